"""Reports as text and as lines of JSON."""

from __future__ import annotations

import json
from itertools import groupby

from replay.report.replay_document import ACCEPTED as ACCEPTED_HEADING
from replay.report.replay_document import UPGRADE
from replay.report.report import ndjson_lines, text_lines
from replay.report.report_rows import SECTIONS
from replay.report.report_words import value_text
from tests.replay.support.outcomes import outcome
from tests.replay.support.reports import REMAINS, full, made, outcomes, produced

ABSENT = ("shared_log", "trial", "unsupported", "documented")


def test_ndjson_has_all_sections() -> None:
    report = full()
    rows = [json.loads(line) for line in ndjson_lines(report)]
    sections = [section for section, _ in groupby(row["section"] for row in rows)]
    assert sections == [each for each in SECTIONS if each not in ABSENT]
    assert sum(row["section"] == "difference" for row in rows) == 6
    assert rows[0]["passed"] is False


def test_text_begins_with_the_verdict() -> None:
    lines = list(text_lines(made()))
    assert lines[0] == "target:9092: 3 of 4 responses differ from the capture"
    assert "responses 1 same, 0 equivalent, 1 differs, 1 error changed, 1 missing, 0 extra" in lines
    assert any("MESSAGE_TOO_LARGE" in line for line in lines)
    assert "  step 2: Produce v7 sent as v6 of tester, connection 3, id 7" in lines
    assert [line for line in lines if "is telemetry" in line]
    assert "Incomplete connections" in lines
    assert lines[lines.index("Left behind on the target") + 2] == REMAINS


def test_missing_prerequisites_are_counted() -> None:
    lacking = outcomes()[1]
    lacking.step.missing_prerequisites = frozenset({"CreateAcls"})
    lines = list(text_lines(made(lacking)))
    assert "missing   prerequisites of 1 failing responses were left out" in lines
    (heading,) = (line for line in lines if line.startswith("  step 1:"))
    assert heading.endswith("; may follow from CreateAcls, left out")
    assert not any("left out" in line for line in text_lines(made()) if "step" in line)
    lacking.step.missing_prerequisites = frozenset(
        f"AlterConfigs of \x07{each}" for each in "abcde"
    )
    (heading,) = (line for line in text_lines(made(lacking)) if line.startswith("  step 1:"))
    assert heading.isprintable()
    assert heading.endswith("d and 1 more, left out")


def test_only_the_first_differences_are_listed() -> None:
    lines = list(text_lines(made(), 1))
    assert "1 of 3 differences" in lines
    assert "Differences" in list(text_lines(made()))


def test_captured_text_is_escaped() -> None:
    evil = outcome("Produce", 7, produced(topic="\x1b[31m"), produced(topic="a\x07"))
    for lines in (text_lines(made(evil)), ndjson_lines(made(evil))):
        assert all(line.isprintable() for line in lines)


def test_long_values_are_shortened() -> None:
    assert value_text("x" * 200, 10) == "xxxxxxxxx…"
    assert value_text({"a": None}) == '{"a": null}'


def test_accepted_differences_have_sections_of_their_own() -> None:
    lines = list(text_lines(full()))
    upgrade, accepted = lines.index(UPGRADE), lines.index(ACCEPTED_HEADING)
    assert lines[upgrade + 2].endswith("CreateTopics.topics[*].configs[min.insync.replicas].value")
    assert "UNKNOWN_TOPIC_OR_PARTITION" in lines[accepted + 2]
    by_field = lines.index("Differences by field, the first at the top")
    assert not any("UNKNOWN_TOPIC" in line or "configs" in line for line in lines[by_field:])


def test_long_reasons_keep_columns_aligned() -> None:
    long, short = outcomes()[4], outcomes()[4]
    long.failure = "x" * 200
    lines = list(text_lines(made(long, short)))
    at = lines.index("Left out")
    assert [line[:15] for line in lines[at + 2 : at + 4]] == ["    1  replay  "] * 2
