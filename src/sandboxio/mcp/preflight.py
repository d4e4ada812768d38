"""What would fail at every call is refused before the first one, where somebody reads it."""

from __future__ import annotations

from sandboxio import Capability, ConfigurationError
from sandboxio.adapter.validation import checked_timeout
from sandboxio.backends import backends_with
from sandboxio.mcp.holder import Profile

__all__ = ["refuse_unsupported"]


def refuse_unsupported(profile: Profile) -> None:
    """See whether the backend can make such sandboxes at all. It does no I/O.

    Raises:
        ConfigurationError: The lifetime is too long, or the backend cannot enforce the network policy.

    Example: `refuse_unsupported(Profile.from_options(options))`
    """
    checked_timeout(profile.lifetime)
    needed = (
        (bool(profile.network.allow), Capability.NETWORK_ALLOWLIST, "--allow"),
        (profile.network.egress == "learn", Capability.EGRESS_LEARN, "--egress learn"),
    )
    for wanted, flag, option in needed:
        if wanted and flag not in profile.backend.capabilities:
            others = backends_with(flag)
            instead = f", or choose a backend that has it: {', '.join(others)}" if others else ""
            raise ConfigurationError(
                f"the backend {profile.backend.name} does not support {option} ({flag.name})",
                hint=f"leave {option} out{instead}",
            )
