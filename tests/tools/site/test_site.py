"""The site: pages of docs/ with those made of declarations, built strictly."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from advise.catalogue import ADVICES
from conform.rules import REGISTRY
from dissector.cli.app import COMMANDS
from dissector.cli.parsing.command_table import CommandTable
from dissector.protocol.apis import api_keys
from tools.site.api_pages import api_pages
from tools.site.check_pages import advice_pages, rule_pages
from tools.site.command_pages import command_pages
from tools.site.markup import escaped

ROOT = Path(__file__).parents[3]


def test_each_command_rule_advice_and_api_has_a_page() -> None:
    assert command_pages().keys() == set(CommandTable(COMMANDS).names())
    assert "| `-Y, --filter FILTER` |" in command_pages()["pairs"]
    assert rule_pages().keys() == REGISTRY.keys()
    assert "SocketServer.scala" in rule_pages()["F03"]
    assert advice_pages().keys() == ADVICES.keys()
    assert "linger.ms" in advice_pages()["tiny-batches"]
    assert api_pages().keys() == api_keys().keys()
    assert "| 0.8.0 to 0.8.2 | nothing |" in api_pages()["Heartbeat"]
    assert "group_instance_id: string  (nullable)" in api_pages()["Heartbeat"]


def test_words_of_declarations_are_no_markup() -> None:
    assert escaped("a|b <i> [x](y) _z_ `") == r"a\|b &lt;i&gt; \[x\](y) \_z\_ \`"


def test_every_page_of_docs_is_in_the_navigation() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    named = set(re.findall(r"- (?:\w+: )?([\w-]+\.md)$", text, re.MULTILINE))
    pages = {each.name for each in (ROOT / "docs").glob("*.md")}
    assert pages == named - {"index.md", "changelog.md"}


def test_the_workflow_publishes_what_was_pushed_and_only_that() -> None:
    path = ROOT / ".github" / "workflows" / "site.yml"
    (job,) = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values()
    build, publish = job["steps"][-2:]
    assert build["run"] == "python -m mkdocs build"
    assert publish["if"] == "github.event_name == 'push'"
    called = {
        ref: subprocess.run(
            ["bash", "-ec", 'git() { :; }; python() { echo "$@"; }\n' + publish["run"]],
            env={"GITHUB_REF_NAME": ref},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.splitlines()
        for ref in ("main", "v1.2.3")
    }
    assert called["main"] == ["-m mike deploy --push dev"]
    assert called["v1.2.3"][0] == "-m mike deploy --push --update-aliases 1.2 latest"


@pytest.mark.long
@pytest.mark.skipif(find_spec("mkdocs") is None, reason="MkDocs is not installed")
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    assert "`" not in (first := text_of(tmp_path / "index.html"))
    assert "Wireshark for Apache Kafka" in first
    assert "-T text|ndjson|fields" in first
    links = re.findall(r'href="reference/commands/(\w+)/"', (tmp_path / "index.html").read_text())
    assert {"browse", "dissect", "pairs", "conform"} <= set(links)
    rules = (tmp_path / "conformance" / "index.html").read_text()
    assert len(set(re.findall(r'href="\.\./reference/rules/(\w+)/"', rules))) == len(REGISTRY)
    apis = (tmp_path / "apis" / "index.html").read_text()
    assert len(set(re.findall(r'href="\.\./reference/apis/(\w+)/"', apis))) == len(api_keys())
    found = (tmp_path / "search" / "search_index.json").read_text()
    for location in ("reference/rules/F03/", "reference/advice/tiny-batches/", "values/"):
        assert f'"{location}"' in found
    loaded = {
        address
        for page in tmp_path.rglob("*.html")
        for address in re.findall(r'<(?:script|img)[^>]* src="(https?:[^"]+)', page.read_text())
    }
    assert not loaded, "a page loads something from elsewhere"


def text_of(page: Path) -> str:
    """Return the text of a page's article."""
    article = page.read_text(encoding="utf-8").split("<article")[1].split("</article>")[0]
    return html.unescape(re.sub(r"<[^>]*>", "", article))
