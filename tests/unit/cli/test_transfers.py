"""How copies are written on a command line, and what is refused before there is a sandbox."""

from __future__ import annotations

from argparse import ArgumentTypeError
from pathlib import Path

import pytest

from sandboxio import ConfigurationError
from sandboxio.cli.transfers import Transfer, download, require_local_sides, upload


@pytest.mark.parametrize(
    ("text", "local", "path"),
    [("a/b.csv", "a/b.csv", "b.csv"), ("a:b", "a", "b"), ("c:/x:y", "c:/x", "y"), ("a/", "a/", "a")],
)
def test_an_upload_names_both_ends_or_one(text: str, local: str, path: str) -> None:
    assert upload(text) == Transfer(local, path)


@pytest.mark.parametrize(("text", "name"), [(".", "deep"), ("..", "outer"), ("x/..", "deep")])
def test_an_upload_of_a_folder_without_a_name_takes_its_real_one(
    text: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "outer" / "deep" / "x").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "outer" / "deep")
    assert upload(text) == Transfer(text, name)


@pytest.mark.parametrize("text", ["", "/", ":x", "x:"])
def test_an_upload_without_a_name_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError):
        upload(text)


@pytest.mark.parametrize(
    ("text", "local", "path"),
    [("out/b.csv", "b.csv", "out/b.csv"), ("a:b", "b", "a"), (".:all", "all", "."), ("a:b/", "b/", "a")],
)
def test_a_download_names_both_ends_or_one(text: str, local: str, path: str) -> None:
    assert download(text) == Transfer(local, path)


@pytest.mark.parametrize("text", ["", ".", "..", "/", "a/..", "x:.", "x:..", "x:/", "x:a/..", "x:", ":x"])
def test_a_download_that_names_nothing_to_make_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError):
        download(text)


def test_what_is_there_passes(tmp_path: Path) -> None:
    (tmp_path / "in").touch()
    require_local_sides([Transfer(str(tmp_path / "in"), "in")], [Transfer(str(tmp_path / "out"), "out")])


def test_what_is_not_there_cannot_be_copied_in(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be copied in: No such file"):
        require_local_sides([Transfer(str(tmp_path / "in"), "in")], [])


def test_a_folder_that_is_not_there_cannot_be_copied_into(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="is no folder here"):
        require_local_sides([], [Transfer(str(tmp_path / "none" / "out"), "out")])


def test_an_earlier_copy_may_make_the_folder_of_a_later_one(tmp_path: Path) -> None:
    first, second = Transfer(str(tmp_path / "a"), "a"), Transfer(str(tmp_path / "a" / "b"), "b")
    require_local_sides([], [first, second])
    with pytest.raises(ConfigurationError):
        require_local_sides([], [second, first])
