"""Copies into and out of a sandbox: how they are written on a command line, and what none can be."""

from __future__ import annotations

import argparse
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

__all__ = ["Transfer", "download", "require_local_sides", "upload"]

_NO_NAME: Final = ("", "..")


@dataclass(frozen=True, slots=True)
class Transfer:
    """A copy of a file or folder into the sandbox, or out of it.

    Attributes:
        local: Where it is here.
        path: Where it is in the sandbox.
    """

    local: str
    path: str


def upload(text: str) -> Transfer:
    """`LOCAL[:PATH]`; without PATH it keeps its name.

    Example: `upload("a/b.csv") == Transfer("a/b.csv", "b.csv")`
    """
    local, colon, path = text.rpartition(":")
    if colon:
        return _transfer(local, path, text)
    name = Path(text).name
    if name in _NO_NAME:
        name = Path(text).resolve().name
    if not text or not name:
        raise argparse.ArgumentTypeError(f"{text!r} has no name of its own: write LOCAL:PATH")
    return Transfer(text, name)


def download(text: str) -> Transfer:
    """`PATH[:LOCAL]`; without LOCAL it keeps its name.

    Example: `download("out/b.csv") == Transfer("b.csv", "out/b.csv")`
    """
    path, colon, local = text.partition(":")
    made = _transfer(local, path, text) if colon else Transfer(PurePosixPath(text).name, text)
    if Path(made.local).name in _NO_NAME:
        raise argparse.ArgumentTypeError(
            f"{text!r} does not say what to make here: write PATH:LOCAL, where LOCAL is a new name"
        )
    return made


def require_local_sides(uploads: Sequence[Transfer], downloads: Sequence[Transfer]) -> None:
    """Look at this machine's side of all copies.

    Raises:
        ConfigurationError: What is to be copied in cannot be reached, or there is no folder to copy into.
    """
    from sandboxio import ConfigurationError

    for transfer in uploads:
        try:
            Path(transfer.local).stat()
        except OSError as exc:
            raise ConfigurationError(
                f"{transfer.local!r} cannot be copied in: {exc.strerror}",
                hint="name an existing file or folder with --upload",
            ) from exc
    targets = [Path(transfer.local) for transfer in downloads]
    for number, target in enumerate(targets):
        folder = target.parent
        if not _is_folder(folder) and not any(folder.is_relative_to(made) for made in targets[:number]):
            raise ConfigurationError(
                f"{str(folder)!r}, which --download is to copy into, is no folder here",
                hint="make it first, or give --download another LOCAL",
            )


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except OSError:
        return False


def _transfer(local: str, path: str, text: str) -> Transfer:
    if not local or not path:
        raise argparse.ArgumentTypeError(f"{text!r} lacks one of its two paths")
    return Transfer(local, path)
