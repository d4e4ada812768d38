"""What can be the name of an image, and what would lead a request elsewhere."""

from __future__ import annotations

import pytest

from sandboxio.errors import ConfigurationError
from sandboxio_docker.image import chosen_image

DIGEST = "@sha256:" + "a1" * 32


@pytest.mark.parametrize(
    "name",
    [
        "python",
        "python:3.12-slim",
        "python:3",
        "library/python:3.12",
        "localhost:5000/team/image:tag",
        "registry.example.org/a/b/c:v1.2_3-rc",
        "registry.example.org:443/a__b/c--d",
        "127.0.0.1:1/nothing/here:1",
        f"python{DIGEST}",
        f"host:5000/img:tag{DIGEST}",
        "sha256:" + "b2" * 32,
        "0123456789ab",
    ],
)
def test_the_name_of_an_image_is_taken_as_it_is(name: str) -> None:
    assert chosen_image(name, None) == name


@pytest.mark.parametrize(
    "name",
    [
        "..",
        ".",
        "../../containers/json",
        "a/../b",
        "/python",
        "-rf",
        "a b",
        "a?x=1",
        "a#b",
        "a%2fb",
        "a\\b",
        "a\nb",
        "é",
        "a//b",
        "a:",
        "a@b",
        "x" * 600,
    ],
)
def test_what_would_lead_a_request_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="not the name of an image"):
        chosen_image(name, None)
