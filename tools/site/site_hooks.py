"""
Hooks of MkDocs (`hooks` in mkdocs.yml) that add pages to those of docs/.

README is the first page. Links to files outside docs/ lead to the repository. Tables of the written
pages link to the generated page of what a row is about.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # MkDocs loads this file by its path

from tools.site.api_pages import api_pages
from tools.site.check_pages import advice_pages, rule_pages
from tools.site.command_pages import command_pages

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

REFERENCE = {
    "reference/commands": command_pages,
    "reference/rules": rule_pages,
    "reference/advice": advice_pages,
    "reference/apis": api_pages,
}
"""Folder -> function that returns its pages by name."""

COPIED = {"README.md": "index.md", "CHANGELOG.md": "changelog.md"}
"""Files of the repository that are pages of the site."""

ROW_LINKS = {
    "index.md": (r"(?P<before>\| )(?P<shown>`(?P<name>\w+)[^`]*`)", "reference/commands"),
    "conformance.md": (r"(?P<before>\| )(?P<shown>(?P<name>[A-Z]\d+))", "reference/rules"),
    "apis.md": (r"(?P<before>\| \d+ \| )(?P<shown>(?P<name>\w+))", "reference/apis"),
}
"""Page -> how rows of its tables begin, and the folder with the page of that name."""

_LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)\s#]+)(#[^)\s]*)?(?=\))")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the commands to the navigation."""
    commands = [{name: f"reference/commands/{name}.md"} for name in command_pages()]
    config.nav = [*(config.nav or ()), {"Commands": commands}]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, and those of the repository."""
    from mkdocs.structure.files import File

    pages = {
        f"{folder}/{name}.md": text
        for folder, make in REFERENCE.items()
        for name, text in make().items()
    }
    pages |= {page: (ROOT / source).read_text() for source, page in COPIED.items()}
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return a page with links that lead somewhere on the site."""
    path = page.file.src_uri
    source = next((name for name, copy in COPIED.items() if copy == path), f"docs/{path}")
    text = _with_site_links(markdown, source, config.repo_url or "")
    return _with_row_links(_without_escaped_bars(text), path, files)


def _without_escaped_bars(text: str) -> str:
    r"""Return a page with `a|b` in rows of tables in place of `a\|b`, which only GitHub needs."""
    return re.sub(
        r"^\|.*$",
        lambda row: re.sub(r"`[^`]*`", lambda code: code[0].replace(r"\|", "|"), row[0]),
        text,
        flags=re.MULTILINE,
    )


def _with_site_links(text: str, source: str, repository: str) -> str:
    def site_link(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), match[1]))
        if path in COPIED:
            return COPIED[path] + (match[2] or "")
        if path.startswith("docs/"):
            return match[0] if source.startswith("docs/") else path[5:] + (match[2] or "")
        if (ROOT / path).exists():
            return f"{repository}/blob/main/{path}{match[2] or ''}"
        return match[0]

    return _LINK.sub(site_link, text)


def _with_row_links(text: str, path: str, files: Files) -> str:
    if path not in ROW_LINKS:
        return text
    pattern, folder = ROW_LINKS[path]

    def row_link(match: re.Match[str]) -> str:
        target = f"{folder}/{match['name']}.md"
        if files.get_file_from_path(target) is None:
            return match[0]
        return f"{match['before']}[{match['shown']}]({target})"

    return re.sub(f"^{pattern}", row_link, text, flags=re.MULTILINE)
