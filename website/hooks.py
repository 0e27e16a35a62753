"""Hooks of mkdocs: pages from outside docs/, links to the repository; pages load nothing from elsewhere."""

from __future__ import annotations

import logging
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
OUTSIDE = {
    "CHANGELOG.md": ROOT / "CHANGELOG.md",
    "CONTRIBUTING.md": ROOT / "CONTRIBUTING.md",
    "SECURITY.md": ROOT / "SECURITY.md",
    "site.css": Path(__file__).with_name("site.css"),
}
"""Path on the site → the file."""
UNSEARCHED = {"performance-data.md", "CHANGELOG.md"}
"""Pages of figures and of history. They have so many words that each search would find them first."""
LOADED = re.compile(
    r'<(?:script|img|iframe|link rel="(?:stylesheet|preconnect|icon)")[^>]*"((?:https?:)?//[^"]+)'
)
LOG = logging.getLogger("mkdocs.hooks.website")
LINK = re.compile(r"(\]\()([^)#:\s]+)((?:#[^)]*)?\))")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are not in docs/."""
    for path, source in OUTSIDE.items():
        files.append(File.generated(config, path, abs_src_path=str(source)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Point each link at a page of the site, or at the file in the repository."""
    path = page.file.src_uri
    if path in UNSEARCHED:
        page.meta["search"] = {"exclude": True}
    folder = "" if path in OUTSIDE else posixpath.join("docs", posixpath.dirname(path))

    def target(match: re.Match[str]) -> str:
        before, link, after = match.groups()
        place = posixpath.normpath(posixpath.join(folder, link))
        on_site = place.removeprefix("docs/")
        if (place.startswith("docs/") or place in OUTSIDE) and files.get_file_from_path(on_site):
            return f"{before}{posixpath.relpath(on_site, posixpath.dirname(path) or '.')}{after}"
        if (ROOT / place).exists():
            kind = "tree" if (ROOT / place).is_dir() else "blob"
            return f"{before}{config.extra['repository']}/{kind}/main/{place}{after}"
        return match[0]

    return LINK.sub(target, markdown)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Warn of what a page loads from another server: that server would learn who reads the page."""
    for address in LOADED.findall(output):
        LOG.warning("%s loads %s", page.file.src_uri, address)
    return output
