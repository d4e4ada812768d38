"""What `sandboxio doctor` shows of E2B. Nothing here costs money or creates anything."""

from __future__ import annotations

import os
from importlib.metadata import version

from e2b_code_interpreter import AsyncSandbox

from sandboxio.adapter.provision import Translated
from sandboxio.diagnosis import Check
from sandboxio.errors import SandboxError
from sandboxio.redaction import redactor_for
from sandboxio_e2b import managed
from sandboxio_e2b.errors import API_KEY_VARIABLE, translate
from sandboxio_e2b.provisioner import E2BProvisioner

__all__ = ["examine"]


async def examine(provisioner: E2BProvisioner) -> tuple[Check, ...]:
    """Look at the SDK, the key and whether the control plane answers to it."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("e2b", "e2b-code-interpreter"))
    checks = [Check("sdk", "ok", versions)]
    if not os.environ.get(API_KEY_VARIABLE, "").strip():  # not in use here, which is no fault
        hint = f"to use E2B, set the environment variable {API_KEY_VARIABLE} to a key of your E2B account"
        return (*checks, Check("key", "warning", f"{API_KEY_VARIABLE} is not set", hint))
    try:
        with Translated(translate, redactor_for("e2b"), "listing sandboxes"):
            found = await managed.list_managed(provisioner.options(), provisioner.name)
    except SandboxError as exc:
        return (*checks, Check("service", "failed", exc.message, exc.hint))
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
