from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.dissector.cli.conftest import Run
from tests.dissector.protocol.test_apis import corrected_facts


def test_every_message_and_version_equals_kafkas_definition(good: Run, shared: Path) -> None:
    """Path, type, nullability, tag and order of every field, and flexible versions."""
    declared = corrected_facts(shared)
    expected = [
        {
            "api_key": message["api_key"],
            "api": message["name"],
            "kind": message["kind"],
            "version": version,
            "flexible": version in _versions(message["flexible"]),
            "fields": list(_in_wire_order(message["fields"], version)),
        }
        for message in sorted(declared, key=lambda m: (m["api_key"], m["kind"]))
        for version in _versions(message["versions"])
    ]
    rows = good("schema", "-T", "ndjson").rows
    assert len(rows) == len(expected) == 736
    for row, wanted in zip(rows, expected, strict=True):
        assert row == wanted
        assert list(row) == list(wanted)


def _in_wire_order(
    fields: list[dict[str, Any]], version: int, inside: str = ""
) -> Iterator[dict[str, Any]]:
    """Yield the fields of a struct, recursively; tagged ones after the others, by tag."""
    own = [
        field
        for field in fields
        if field["path"].rpartition(".")[0] == inside and version in _versions(field["versions"])
    ]
    own.sort(key=lambda field: -1 if _tag(field, version) is None else _tag(field, version))
    for field in own:
        yield {
            "path": field["path"],
            "type": field["type"],
            "nullable": version in _versions(field.get("nullable")),
            "tag": _tag(field, version),
        }
        yield from _in_wire_order(fields, version, field["path"])


def _tag(field: dict[str, Any], version: int) -> int | None:
    if "tag" not in field:
        return None
    tagged = _versions(field.get("tagged", field["versions"]))
    return int(field["tag"]) if version in tagged else None


def _versions(text: str | None) -> range:
    if text is None:
        return range(0)
    low, _, high = text.partition("-")
    return range(int(low), int(high or low) + 1)


def test_overview(good: Run) -> None:
    lines = good("schema").lines
    assert len(lines) == 96
    assert lines[0].split() == ["api_key", "api", "versions", "flexible"]
    assert lines[1].split() == ["0", "Produce", "0-13", "9+"]
    assert lines[18].split()[1:] == ["SaslHandshake", "0-1", "never"]


@pytest.mark.parametrize("name", ["Produce", "produce", "PRODUCE", "0"])
def test_one_api_at_its_newest_version(good: Run, name: str) -> None:
    lines = good("schema", name).lines
    assert lines[0] == "Produce request v13 (key 0, known: 0-13, flexible)"
    assert "    transactional_id: string  (nullable)" in lines
    assert "        topic_id: uuid" in lines
    assert "            current_leader: struct  (tag 0)" in lines


def test_one_version(good: Run) -> None:
    lines = good("schema", "SaslAuthenticate", "0").lines
    assert lines == [
        "SaslAuthenticate request v0 (key 36, known: 0-2)",
        "    auth_bytes: bytes  (secret)",
        "",
        "SaslAuthenticate response v0 (key 36, known: 0-2)",
        "    error_code: int16",
        "    error_message: string  (nullable)",
        "    auth_bytes: bytes  (secret)",
        "",
    ]


def test_ndjson_of_one_version(good: Run) -> None:
    rows = good("schema", "17", "1", "-T", "ndjson").rows
    assert [(row["kind"], row["version"]) for row in rows] == [("request", 1), ("response", 1)]
    assert rows[0]["fields"] == [
        {"path": "Mechanism", "type": "string", "nullable": False, "tag": None}
    ]
    assert len(good("schema", "17", "-T", "ndjson").rows) == 4


def test_to_a_file(good: Run, tmp_path: Path) -> None:
    file = tmp_path / "schema.txt"
    assert good("schema", "Vote", "-o", file).out == ""
    assert file.read_text() == good("schema", "Vote").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["Nonsense"], "no API has the name or key 'Nonsense'; `kafkashark schema` lists them"),
        (["999"], "no API has the name or key '999'; `kafkashark schema` lists them"),
        (["Vote", "99"], "Vote has no version 99; known: "),
        (["-T", "csv"], "-T takes text, ndjson, not 'csv'"),
    ],
)
def test_unknown_apis_and_versions(run: Run, words: list[str], said: str) -> None:
    done = run("schema", *words)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"kafkashark: {said}")
    assert done.err.count("\n") == 1


def test_a_version_must_be_a_number(run: Run) -> None:
    done = run("schema", "Vote", "new")
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert "VERSION" in done.err
