"""The page loads nothing, and captured text is escaped."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest

from dissector.view.document.html_form import json_for_script
from tests.corpus import FOLDER
from tests.report.pages import HOSTILE, ParsedPage, hostile_capture, page_of

SHOWN = HOSTILE.replace("\x1b", r"\x1b").replace("\u2028", r"\u2028").replace("\u202e", r"\u202e")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> ParsedPage:
    folder = tmp_path_factory.mktemp("hostile")
    return page_of(folder, hostile_capture(folder))


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> ParsedPage:
    return page_of(tmp_path_factory.mktemp("demo"), FOLDER / "demo.pcap")


def test_captured_names_are_text(hostile: ParsedPage) -> None:
    assert [row["topic"] for row in hostile.dicts("topics")] == [SHOWN]
    assert {row["client id"] for row in hostile.dicts("clients")} == {SHOWN, "plain"}
    assert {each["name"] for each in hostile.plots["series"]["topic"]} == {SHOWN}
    assert SHOWN in [row["subject"] for row in hostile.dicts("events-group")]


def test_captured_names_are_not_markup(hostile: ParsedPage, demo: ParsedPage) -> None:
    assert [tag for tag, _ in hostile.tags].count("script") == 2
    assert "img" not in {tag for tag, _ in hostile.tags}
    names = {name for _, attributes in hostile.tags for name in attributes}
    assert not {name for name in names if name.startswith("on")}
    assert names <= {name for _, attributes in demo.tags for name in attributes} | {"class"}


def test_control_characters_are_removed(hostile: ParsedPage) -> None:
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]", hostile.source)


def test_the_page_loads_nothing(demo: ParsedPage) -> None:
    for tag, attributes in demo.tags:
        assert tag not in {"link", "img", "iframe", "object", "embed", "base", "form"}
        assert not {"src", "srcset", "style", "action", "ping"} & attributes.keys()
        assert (attributes.get("href") or "#").startswith("#")
    style = dict(demo.texts)["style"]
    assert "url(" not in style
    assert "@import" not in style


def test_the_content_security_policy_allows_the_page_script_only(demo: ParsedPage) -> None:
    (policy,) = (
        attributes["content"]
        for tag, attributes in demo.tags
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    style, _, script = (text for _, text in demo.texts)
    assert policy == (
        f"default-src 'none'; script-src '{digest(script)}'; style-src '{digest(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def test_sections_have_labels_for_screen_readers(demo: ParsedPage) -> None:
    ids = [attributes["id"] for _, attributes in demo.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [attributes["href"] for tag, attributes in demo.tags if tag == "a"]
    assert links[0] == "#main"
    assert {link[1:] for link in links if link} <= set(ids)


def test_json_in_a_script() -> None:
    value = {"name": HOSTILE, "none": None}
    text = json_for_script(value)
    assert json.loads(text) == value
    assert text.isascii()
    assert not set("<>&") & set(text)


def test_credentials_are_masked(tmp_path: Path) -> None:
    name = "jdbc:mysql://app:s3cret@db/orders"
    capture = hostile_capture(tmp_path, [name])
    page = page_of(tmp_path, capture)
    assert "s3cret" not in page.source
    assert [row["topic"] for row in page.dicts("topics")] == ["***"]
    (tmp_path / "report.html").unlink()
    shown = page_of(tmp_path, capture, "--show-secrets")
    assert [row["topic"] for row in shown.dicts("topics")] == [name]
    assert (tmp_path / "report.html").stat().st_mode & 0o777 == 0o600


@pytest.mark.long
def test_many_long_names_do_not_enlarge_the_page(tmp_path: Path) -> None:
    names = [f"{number:03}" + "<&'\"" * 500 for number in range(150)]
    page = page_of(tmp_path, hostile_capture(tmp_path, names))
    assert len(page.dicts("topics")) == 100
    assert "50 more are not shown." in page.text
    assert len(page.source) < 5_000_000
