"""What the end of a file script means."""

from __future__ import annotations

from typing import Final

from sandboxio.errors import CapabilityNotSupported, FileSystemError, PathNotFound, SandboxError
from sandboxio_docker import file_scripts as scripts

__all__ = ["file_error"]

_ALREADY_SAID: Final = {
    scripts.EXISTS_AS_DIRECTORY: (
        "is a directory",
        "name a file; files.ls() lists a directory, and remove(recursive=True) removes one",
    ),
    scripts.NOT_A_DIRECTORY: ("is not a directory", "name a directory"),
    scripts.NOT_A_FILE: ("is neither a file nor a directory", "read devices and pipes with run()"),
    scripts.SHORT: ("did not arrive whole, so nothing was changed", "write it again"),
}

_NO_FOLDER_ON_THE_WAY: Final = ("has a part that is not a directory", "list the parent to see what is there")
_TOO_LONG: Final = ("has a part that is too long", "use at most 255 bytes for each part")
_LOOP: Final = ("is a link that leads nowhere", "remove it first")

# In the words of glibc, musl and busybox.
_PHRASES: Final = (
    ("read-only file system", "lies on a read-only file system", "write below /work, /tmp or /dev/shm"),
    ("permission denied", "may not be used by the sandbox's user", "use paths below /work or /tmp"),
    ("operation not permitted", "may not be changed by the sandbox's user", "use paths below /work or /tmp"),
    ("file exists", "exists already", "remove it first, or use mkdir(parents=True)"),
    ("not a directory", *_NO_FOLDER_ON_THE_WAY),
    ("path has non-directory component", *_NO_FOLDER_ON_THE_WAY),
    ("is a directory", "is a directory", "name a file"),
    ("file name too long", *_TOO_LONG),
    ("filename too long", *_TOO_LONG),
    ("resource busy", "is in use as a mount point", "remove what is in it instead"),
    ("too many levels of symbolic links", *_LOOP),
    ("symbolic link loop", *_LOOP),
)

_MISSING_PHRASES: Final = (
    "no such file or directory",
    "no such file",
    "directory nonexistent",
    "nonexistent directory",
)


def file_error(path: str, code: int | None, reason: str, disk_mb: int | None) -> SandboxError:
    """The error for a script about `path` that ended with `code`, having written `reason`."""
    shown = repr(path)
    last = reason.strip().rpartition("\n")[2].strip()
    lowered = reason.lower()
    lines = tuple(line.strip() for line in lowered.splitlines())
    if code == scripts.MISSING:
        return PathNotFound(f"{shown} does not exist")
    if code == scripts.NO_TAR:
        return CapabilityNotSupported(
            "the image has no tar, so directories cannot be transferred",
            hint="use an image that contains tar, or transfer single files",
        )
    if code in _ALREADY_SAID:
        words, hint = _ALREADY_SAID[code]
        return FileSystemError(f"{shown} {words}", hint=hint)
    if "no space left on device" in lowered:
        return FileSystemError(
            f"no space left on device for {shown}: disk_mb={disk_mb}",
            hint="raise Resources(disk_mb=…), or remove files",
        )
    for phrase, words, hint in _PHRASES:
        if any(line.endswith(phrase) for line in lines):
            return FileSystemError(f"{shown} {words}", hint=hint)
    if any(line.endswith(_MISSING_PHRASES) for line in lines):
        return PathNotFound(
            f"{shown} or its parent does not exist",
            hint="make the parent with files.mkdir(…, parents=True), or list it with files.ls()",
        )
    if code == 127:
        return CapabilityNotSupported(
            f"the image lacks a tool that file operations need: {last[:200]}",
            hint="use an image with coreutils or busybox",
        )
    return FileSystemError(
        f"the operation on {shown} failed with code {code}: {last[:300] or 'no reason given'}"
    )
