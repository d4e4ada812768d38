"""What `sandboxio doctor` shows of E2B. Nothing here costs money or creates anything."""

from __future__ import annotations

from importlib.metadata import version

from e2b_code_interpreter import AsyncSandbox

from sandboxio.diagnosis import Check
from sandboxio.errors import SandboxError
from sandboxio_e2b import managed
from sandboxio_e2b.errors import translate
from sandboxio_e2b.provisioner import E2BProvisioner

__all__ = ["examine"]


async def examine(provisioner: E2BProvisioner) -> tuple[Check, ...]:
    """Look at the SDK, the key and whether the control plane answers to it."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("e2b", "e2b-code-interpreter"))
    checks = [Check("sdk", "ok", versions)]
    try:
        found = await managed.list_managed(provisioner.options(), provisioner.name)
    except Exception as exc:
        error = exc if isinstance(exc, SandboxError) else translate(exc)
        if error is None:
            raise
        return (*checks, Check("service", "failed", error.message, error.hint))
    template = provisioner.config.template or AsyncSandbox.default_template
    checks.append(Check("service", "ok", f"it accepts the key; {len(found)} sandboxes of sandboxio exist"))
    checks.append(Check("template", "ok", template))
    if provisioner.config.loosened:
        hint = "leave the switch out of E2BConfig unless the code needs it"
        loosened = " ".join(provisioner.config.loosened)
        checks.append(Check("hardening", "warning", f"loosened: {loosened}", hint))
    else:
        checks.append(Check("hardening", "ok", "all defaults"))
    return tuple(checks)
