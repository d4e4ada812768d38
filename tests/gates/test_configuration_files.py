"""Files that only other programs read are well-formed, and workflows ask for no more than they need."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
YAML_FILES = sorted([*(ROOT / ".github").rglob("*.yml"), ROOT / "mkdocs.yml"])
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
SHELL_SCRIPTS = sorted([ROOT / ".ci" / "run", *(ROOT / "scripts").glob("*.sh")])
WRITE_PERMISSIONS = {
    "canary.yml": {("report", "issues")},
    "docs.yml": {("deploy", "pages"), ("deploy", "id-token")},
    "release.yml": {
        ("build", "attestations"),
        ("build", "id-token"),
        ("publish", "id-token"),
        ("github-release", "contents"),
    },
}


class Loader(yaml.SafeLoader):
    """YAML as the services read it: MkDocs' `!!python/name` tags are plain names, `on` is a key."""


def plain_name(loader: yaml.Loader, suffix: str, node: yaml.Node) -> str:
    return suffix


Loader.add_multi_constructor("tag:yaml.org,2002:python/name:", plain_name)


def load(text: str) -> dict[Any, Any]:
    document = yaml.load(text, Loader)
    assert isinstance(document, dict)
    return document


def steps(workflow: dict[Any, Any]) -> Iterator[dict[str, Any]]:
    for job in workflow["jobs"].values():
        yield from job.get("steps", [])


def write_permissions(workflow: dict[Any, Any]) -> set[tuple[str, str]]:
    return {
        (name, scope)
        for name, job in workflow["jobs"].items()
        for scope, access in job.get("permissions", {}).items()
        if access == "write"
    }


@pytest.mark.parametrize("path", YAML_FILES, ids=lambda path: path.name)
def test_yaml_parses(path: Path) -> None:
    assert load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_reads_only_and_each_job_says_what_it_writes(path: Path) -> None:
    workflow = load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    assert write_permissions(workflow) == WRITE_PERMISSIONS.get(path.name, set())


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_action_is_pinned_and_keeps_no_credentials(path: Path) -> None:
    for step in steps(load(path.read_text(encoding="utf-8"))):
        action = step.get("uses")
        if action is None:
            continue
        name, _, version = action.partition("@")
        assert version.startswith(("v", "release/v")), action
        if name == "actions/checkout":
            assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_job_is_bounded_in_time(path: Path) -> None:
    for name, job in load(path.read_text(encoding="utf-8"))["jobs"].items():
        assert job["timeout-minutes"] <= 60, name


@pytest.mark.parametrize("name", ["canary.yml", "ci.yml", "release.yml"])
def test_a_job_that_starts_an_engine_runs_the_tests_of_gvisor(name: str) -> None:
    workflow = load((ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8"))
    jobs = ["\n".join(step.get("run", "") for step in job["steps"]) for job in workflow["jobs"].values()]
    with_engine = [commands for commands in jobs if "docker-engine.sh up" in commands]
    assert with_engine
    for commands in with_engine:
        assert "--gvisor" in commands
        assert "not gvisor" not in commands


def test_the_release_uses_no_token() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    assert "secrets." not in text
    assert "password" not in text


def test_a_malformed_file_is_noticed() -> None:
    with pytest.raises(yaml.YAMLError):
        load("jobs: [a, b\n")


@pytest.mark.parametrize("script", SHELL_SCRIPTS, ids=lambda path: path.name)
def test_a_shell_script_is_well_formed_and_executable(script: Path) -> None:
    subprocess.run(["bash", "-n", script], check=True, capture_output=True, timeout=30)
    assert script.stat().st_mode & 0o111
