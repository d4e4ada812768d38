"""A hook of the site build: pages that moved leave a redirect at their old address.

The table is `extra.moved_pages` in `mkdocs.yml`, from the old source path to the new one, such as
`how-to/old.md: how-to/new.md`. A build fails when the new page does not exist or the old one still does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import cast

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Moved</title>
<link rel="canonical" href="{canonical}">
<meta name="robots" content="noindex">
<meta http-equiv="refresh" content="0; url={relative}">
<p>This page has moved <a href="{relative}">here</a>.</p>
</html>
"""


def moved_pages(config: MkDocsConfig) -> dict[str, str]:
    """Return the table of the configuration."""
    extra = cast("Mapping[str, dict[str, str] | None]", config.extra)
    return extra.get("moved_pages") or {}


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Refuse a table that contradicts the pages there are."""
    for old, new in moved_pages(config).items():
        if files.get_file_from_path(old) is not None:
            raise PluginError(f"moved_pages: {old} has moved and is still there")
        if files.get_file_from_path(new) is None:
            raise PluginError(f"moved_pages: {old} has moved to {new}, which does not exist")
    return files


def on_post_build(*, config: MkDocsConfig) -> None:
    """Write the redirects into the site."""
    site = Path(config.site_dir)
    for old, new in moved_pages(config).items():
        source, target = (
            File(path, config.docs_dir, config.site_dir, config.use_directory_urls) for path in (old, new)
        )
        place = site / source.dest_uri
        relative = os.path.relpath(target.dest_uri, Path(source.dest_uri).parent)
        address = relative.removesuffix("index.html") or "./"
        place.parent.mkdir(parents=True, exist_ok=True)
        canonical = f"{config.site_url or ''}{target.url.removeprefix('./')}"
        place.write_text(
            PAGE.format(canonical=escape(canonical), relative=escape(Path(address).as_posix() + "/")),
            encoding="utf-8",
        )
