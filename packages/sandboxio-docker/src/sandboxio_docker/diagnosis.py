"""What `sandboxio doctor` shows of Docker."""

from __future__ import annotations

from sandboxio.diagnosis import Check
from sandboxio.errors import SandboxError
from sandboxio_docker.address import Address
from sandboxio_docker.config import DockerConfig
from sandboxio_docker.errors import translate
from sandboxio_docker.image import chosen_image, inspect_image
from sandboxio_docker.provisioner import DockerProvisioner
from sandboxio_docker.reaper import VARIABLE, reaper_enabled
from sandboxio_docker.runtime import EngineFacts

__all__ = ["examine"]


async def examine(provisioner: DockerProvisioner) -> tuple[Check, ...]:
    """Look at the engine, its caps, the runtime, the image, the reaper and what is loosened."""
    config = provisioner.config
    try:
        engine = await provisioner.engine()
        facts = await provisioner.facts()
        where = _whereabouts(engine.transport.address)
        checks = [Check("engine", "ok", f"Docker {facts.version} {where}"), _caps(facts)]
        checks.append(_runtime(facts, config.runtime))
        name = chosen_image(None, config.template)
        image = await inspect_image(engine, name)
    except Exception as exc:
        error = exc if isinstance(exc, SandboxError) else translate(exc)
        if error is None:
            raise
        return (Check("engine", "failed", error.message, error.hint),)
    if image is None:
        checks.append(
            Check(
                "image", "warning", f"{name} is not there; it is pulled at first use", f"docker pull {name}"
            )
        )
    else:
        checks.append(Check("image", "ok", name))
    if reaper_enabled():
        checks.append(Check("reaper", "ok", "on"))
    else:
        hint = f"unset {VARIABLE} so that what a killed process leaves is removed at once"
        checks.append(Check("reaper", "warning", "off: lifetimes alone end what is left behind", hint))
    if config.loosened:
        hint = "leave the switch out of DockerConfig unless the code needs it"
        checks.append(Check("hardening", "warning", f"loosened: {' '.join(config.loosened)}", hint))
    else:
        checks.append(Check("hardening", "ok", f"all defaults: {_defaults(config)}"))
    return tuple(checks)


def _whereabouts(address: Address) -> str:
    """How the engine is reached; a host's name is nobody's business in a report."""
    if address.scheme in ("unix", "npipe"):
        return f"at {address.url}"
    return f"over {address.scheme}{' with TLS' if address.tls else ''}"


def _defaults(config: DockerConfig) -> str:
    return (
        "no capabilities, no new privileges, the engine's seccomp profile, a read-only system, no root, "
        f"{config.pids_limit} processes"
    )


def _caps(facts: EngineFacts) -> Check:
    if facts.uncapped:
        hint = "give the engine its cgroup controllers; a rootless one needs cgroup v2 with delegation"
        return Check("caps", "failed", f"the engine cannot cap {' or '.join(facts.uncapped)}", hint)
    if not facts.swap_capped:
        hint = "boot with swapaccount=1, use cgroup v2, or switch swap off"
        return Check("caps", "warning", "swap is not capped", hint)
    return Check("caps", "ok", "memory, swap, processes and CPU time")


def _runtime(facts: EngineFacts, name: str | None) -> Check:
    try:
        runtime, tier = facts.runtime_tier(name)
    except SandboxError as exc:
        return Check("runtime", "failed", exc.message, exc.hint)
    mapped = ", users remapped" if facts.remapped else ""
    return Check("runtime", "ok", f"{runtime} ({tier.value}{mapped})")
