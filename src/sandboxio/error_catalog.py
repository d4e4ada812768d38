"""What every error code means, as data. The pages of the documentation are generated from it.

Nothing of the library imports this at run time: an error carries its own message, fix and link.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

__all__ = ["CATALOG", "CatalogEntry"]


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """The page of one code.

    Attributes:
        exception: The name of the class that carries the code.
        title: What happened, in a few words.
        meaning: What the error says about the state of things.
        causes: What usually leads to it.
        fixes: What to do, in the order in which to try.
        example: Python code that meets it, as the body of a coroutine.
    """

    exception: str
    title: str
    meaning: str
    causes: tuple[str, ...]
    fixes: tuple[str, ...]
    example: str


CATALOG: Final[Mapping[str, CatalogEntry]] = MappingProxyType(
    {
        "SBX_E1000": CatalogEntry(
            exception="ConfigurationError",
            title="An argument or a target has no meaning",
            meaning="A value is malformed, contradicts another one, or would remove a bound that every "
            "sandbox has. It was refused before anything was provisioned or sent.",
            causes=(
                "A timeout that is `None`, zero, negative, NaN or infinite.",
                "A DSN that is malformed, or that holds what looks like a credential.",
                "A template or timeout that differs between the target and the keyword.",
                "A network rule that is none of host, `*.suffix`, address or CIDR block.",
                "An environment variable of the library, such as `SBX_TEARDOWN_GRACE`, that holds no number.",
                "A framework or an SDK that an extra brings, such as `langgraph` or `mcp`, is not installed.",
            ),
            fixes=(
                "Correct the argument that the message names.",
                "Give credentials through the provider's own environment variables.",
            ),
            example="try:\n"
            "    await sandboxio.create(timeout=0)\n"
            "except sandboxio.ConfigurationError as error:\n"
            "    print(error.hint)",
        ),
        "SBX_E1001": CatalogEntry(
            exception="BackendNotFound",
            title="No backend has this name",
            meaning="The name before `://` belongs to no backend that was registered or installed.",
            causes=(
                "A typing error in the name.",
                "The distribution of a third party is not installed in this environment.",
                "This version has no adapter for the provider.",
            ),
            fixes=(
                "Use one of the names that the message lists.",
                "Install the distribution that provides the backend.",
                'Name your own class with `sandboxio.register("name", "package.module:Class")`.',
            ),
            example="try:\n"
            '    await sandboxio.create("no-such-backend://")\n'
            "except sandboxio.BackendNotFound as error:\n"
            "    print(error.message)",
        ),
        "SBX_E1002": CatalogEntry(
            exception="BackendNotInstalled",
            title="The backend's distribution is not installed",
            meaning="The backend is known, but its distribution is missing here, or importing it failed. In "
            "the second case the exception's `__cause__` is what the import raised.",
            causes=(
                "Only the core distribution was installed.",
                "Another environment is active than the one that the extra was installed into.",
                "A dependency of the adapter is missing or broken.",
            ),
            fixes=(
                "In the checkout, run the install command in the error's hint.",
                "In a project of your own beside it, run `uv add --editable ../sandboxio --extra NAME`.",
                "Run `sandboxio doctor` to see what is installed.",
            ),
            example="try:\n"
            "    await sandboxio.create()\n"
            "except sandboxio.BackendNotInstalled as error:\n"
            '    print("run:", error.hint)',
        ),
        "SBX_E1101": CatalogEntry(
            exception="CapabilityNotSupported",
            title="The sandbox cannot do what was asked",
            meaning="The backend or this sandbox does not declare the capability, or does not reach the "
            "isolation tier that was required. Nothing was emulated, and where it concerns a creation, "
            "nothing was created.",
            causes=(
                "An allow list on a backend that can only deny or allow everything.",
                "`require_isolation` above what the backend gives.",
                "`context_id` on a backend without lasting contexts.",
                "A language whose interpreter the image does not have, or a text command without a shell.",
            ),
            fixes=(
                "Choose a backend, image or runtime that offers it; the message names the flag.",
                "Branch on `sandbox.capabilities` before using what not every backend has.",
            ),
            example="try:\n"
            "    await sandboxio.create(require_isolation=sandboxio.IsolationTier.MICROVM)\n"
            "except sandboxio.CapabilityNotSupported as error:\n"
            "    print(error.message)",
        ),
        "SBX_E1201": CatalogEntry(
            exception="CreationError",
            title="The sandbox could not be created",
            meaning="The provider was reached, but no usable sandbox came of it. What had been made by then "
            "was removed again.",
            causes=(
                "The image or template does not exist, or cannot be pulled from here.",
                "The provider has no room, or refuses the configuration.",
            ),
            fixes=(
                "Follow the hint: it names the image, the limit or the command.",
                "Run `sandboxio doctor` to see what the backend lacks.",
                "On a machine that reaches no image registry, make an image with the project's script.",
            ),
            example="try:\n"
            '    await sandboxio.create(template="no-such-image:none")\n'
            "except sandboxio.CreationError as error:\n"
            "    print(error.hint)",
        ),
        "SBX_E1202": CatalogEntry(
            exception="ConnectError",
            title="The provider could not be reached or did not answer as it should",
            meaning="A request got no answer, a wrong one, or a refusal that says nothing about the sandbox. "
            "Whether the sandbox still runs is not known; its lifetime ends it in any case.",
            causes=(
                "The engine or service is not running, or not where it was looked for.",
                "The network between here and the provider failed during a call.",
                "The provider refused to end a sandbox.",
            ),
            fixes=(
                "Run `sandboxio doctor` to see whether the backend is reachable.",
                "Start the engine, or correct its address in the provider's own variables.",
                "Where ending it was refused, find it at the provider by the label `sandboxio.managed=true`.",
            ),
            example="try:\n"
            "    sandbox = await sandboxio.create()\n"
            "except sandboxio.ConnectError as error:\n"
            "    print(error.hint)",
        ),
        "SBX_E1203": CatalogEntry(
            exception="CreateTimeout",
            title="No usable sandbox in time",
            meaning="The provider accepted the request but did not provide a running sandbox within its "
            "bound. What it had begun was removed, or an `OrphanedSandboxWarning` says what may be left. It "
            "is both a `CreationError` and a `SandboxTimeout`.",
            causes=("The provider is overloaded.", "The machine is short of memory or disk."),
            fixes=(
                "Try again, with fewer creations at once.",
                "Run `sandboxio doctor` when it happens repeatedly.",
            ),
            example="try:\n"
            "    sandbox = await sandboxio.create()\n"
            "except sandboxio.SandboxTimeout as error:\n"
            "    print(error.code)",
        ),
        "SBX_E1204": CatalogEntry(
            exception="SandboxGone",
            title="The sandbox has ended",
            meaning="The sandbox does not exist any more. Its files and processes are gone with it.",
            causes=(
                "Its lifetime, `create(timeout=…)`, is over.",
                "It was killed, or its context was left.",
                "The provider ended it, or its engine was restarted.",
                "The id given to `connect` belongs to no running sandbox.",
            ),
            fixes=(
                "Create a new sandbox.",
                "Give `create(timeout=…)` a longer lifetime if it expired.",
                "Keep all uses of the sandbox inside its context.",
            ),
            example="async with sandboxio.create() as sandbox:\n"
            "    pass\n"
            "try:\n"
            '    await sandbox.run(["true"])\n'
            "except sandboxio.SandboxGone as error:\n"
            "    print(error.message)",
        ),
        "SBX_E1301": CatalogEntry(
            exception="ExecutionError",
            title="An execution did not succeed",
            meaning="`raise_for_status()` was called on a result whose exit code is not 0, or an execution "
            "could not take what was given to it. `error.result` is the whole result; where there is none, "
            "an empty one with exit code -1.",
            causes=(
                "The program or the code failed.",
                "The program is missing (127) or cannot be executed (126).",
                "A process was written to that no longer reads its input.",
            ),
            fixes=(
                "Read `error.result.stderr`.",
                "Leave out `raise_for_status()` where a failure is a normal answer.",
            ),
            example="async with sandboxio.create() as sandbox:\n"
            '    result = await sandbox.run(["false"])\n'
            "    try:\n"
            "        result.raise_for_status()\n"
            "    except sandboxio.ExecutionError as error:\n"
            "        print(error.result.exit_code)",
        ),
        "SBX_E1302": CatalogEntry(
            exception="ExecutionTimeout",
            title="An execution ran past its deadline",
            meaning="The deadline of this execution passed, and its whole process tree was ended. The "
            "sandbox and everything else in it go on. `error.partial` holds what was written before, with "
            "exit code -1.",
            causes=(
                "The program waits for something that never comes.",
                "The work needs longer than `timeout=`, or than the lifetime that it inherited.",
            ),
            fixes=(
                "Raise `timeout=` of the call; it may also have to be raised for the sandbox.",
                "Make the program do less, or stream its output to see where it stays.",
            ),
            example="async with sandboxio.create() as sandbox:\n"
            "    try:\n"
            '        await sandbox.run("echo begun; sleep 60", timeout=1)\n'
            "    except sandboxio.ExecutionTimeout as error:\n"
            "        print(error.partial.stdout)",
        ),
        "SBX_E1401": CatalogEntry(
            exception="NetworkPolicyViolation",
            title="A connection was attempted that the policy forbids",
            meaning="The provider reported a denied connection as a failure of the operation. No byte of it "
            "left the sandbox. Where the provider reports nothing, the program in the sandbox sees an "
            "ordinary network error instead.",
            causes=(
                "The code reaches for a destination that is not on the allow list.",
                "The default denies all.",
            ),
            fixes=(
                "Allow the destination with `network=NetworkPolicy(allow=(…,))`, if it is meant.",
                "Put what the code needs into the image, so that it needs no network.",
            ),
            example='policy = sandboxio.NetworkPolicy(allow=("example.org",))\n'
            "try:\n"
            "    sandbox = await sandboxio.create(network=policy)\n"
            "except sandboxio.NetworkPolicyViolation as error:\n"
            "    print(error.message)",
        ),
        "SBX_E1402": CatalogEntry(
            exception="ResourceLimitExceeded",
            title="A cap of the sandbox ended an execution",
            meaning="The execution was killed because the sandbox reached the cap that the message names "
            "with its value. `error.partial` holds what was written before, with exit code -1.",
            causes=("The program needs more memory than `memory_mb`.", "The program leaks memory."),
            fixes=(
                "Raise the cap that the message names, in `resources=Resources(…)`.",
                "Work on the data in pieces.",
            ),
            example="async with sandboxio.create(resources=sandboxio.Resources(memory_mb=128)) as sandbox:\n"
            "    try:\n"
            '        await sandbox.run_code("x = bytearray(2**30)")\n'
            "    except sandboxio.ResourceLimitExceeded as error:\n"
            "        print(error.message)",
        ),
        "SBX_E1501": CatalogEntry(
            exception="AuthError",
            title="The provider's credential is missing or refused",
            meaning="The provider did not accept who is asking. Nothing was created.",
            causes=(
                "The environment variable that the message names is not set.",
                "The credential has expired, was revoked, or belongs to another account.",
            ),
            fixes=(
                "Set the environment variable that the message names.",
                "For a private image, sign in to its registry on the machine that creates the sandbox.",
            ),
            example="try:\n"
            "    sandbox = await sandboxio.create()\n"
            "except sandboxio.AuthError as error:\n"
            "    print(error.hint)",
        ),
        "SBX_E1502": CatalogEntry(
            exception="RateLimitError",
            title="The provider asks to slow down",
            meaning="The provider refuses for now because of the rate or the number of requests. Nothing was "
            "retried, since only the caller knows whether that is wise.",
            causes=("Too many sandboxes at once for the account.", "Too many requests in a short time."),
            fixes=("Wait, then try again.", "Bound how many sandboxes are created at once."),
            example="try:\n"
            "    sandbox = await sandboxio.create()\n"
            "except sandboxio.RateLimitError:\n"
            '    print("later")',
        ),
        "SBX_E1601": CatalogEntry(
            exception="AuditSinkError",
            title="An audit sink did not take an event",
            meaning='The backend\'s `AuditConfig` says `on_sink_failure="fail"`, and a sink raised or took '
            "longer than `SBX_AUDIT_TIMEOUT`. The operation itself had succeeded; the exception's "
            "`__cause__` is what the sink raised. The other sinks did get the event.",
            causes=(
                "The disk is full or the file cannot be opened.",
                "The service behind the sink does not answer.",
            ),
            fixes=(
                "Repair the sink.",
                'Use `on_sink_failure="warn"` where an operation may go unrecorded.',
                "Raise `SBX_AUDIT_TIMEOUT` if the sink is slow but sound.",
            ),
            example="async with sandboxio.create() as sandbox:\n"
            "    try:\n"
            '        await sandbox.run(["true"])\n'
            "    except sandboxio.AuditSinkError as error:\n"
            "        print(error.__cause__)",
        ),
        "SBX_E1700": CatalogEntry(
            exception="FileSystemError",
            title="A file operation was refused",
            meaning="The sandbox's file system, or the local side of a transfer, did not allow the "
            "operation. A failed download leaves nothing behind.",
            causes=(
                "No permission, no space left, or a read-only file system.",
                "A directory where a file is needed, or the other way round.",
                "A downloaded tree holds names, links or devices that would lead outside its target.",
            ),
            fixes=(
                "Write below the working folder, which is writable.",
                "Raise `Resources(disk_mb=…)` if the space is used up.",
                "Look at the tree with `files.ls()` before downloading what untrusted code made.",
            ),
            example="async with sandboxio.create() as sandbox:\n"
            "    try:\n"
            '        await sandbox.files.read("/")\n'
            "    except sandboxio.FileSystemError as error:\n"
            "        print(error.message)",
        ),
        "SBX_E1701": CatalogEntry(
            exception="PathNotFound",
            title="The path does not exist",
            meaning="Nothing is at this path in the sandbox, or, for a transfer, on the local side. A "
            "relative path starts at the sandbox's working folder, for files and for commands alike.",
            causes=(
                "A typing error in the path.",
                "The program that should make the file failed.",
                "A missing `cwd`.",
            ),
            fixes=(
                "List the parent with `files.ls()`.",
                "Make the parent with `files.mkdir(path, parents=True)`.",
            ),
            example="async with sandboxio.create() as sandbox:\n"
            "    try:\n"
            '        await sandbox.files.read("missing.txt")\n'
            "    except sandboxio.PathNotFound as error:\n"
            "        print(error.message)",
        ),
    }
)
