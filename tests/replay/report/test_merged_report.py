"""Several reports merged into one, in all formats."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dissector.errors import UsageError
from replay.compare.log_balance import SharedLog, UnbalancedLog
from replay.mapping.appended_ranges import Stretch
from replay.model.outcome import BatchedOutcome, Verdict
from replay.options.play_options import PlayOptions
from replay.report.merged_report import merge_reports
from replay.report.report import (
    Report,
    html_lines,
    junit_lines,
    ndjson_lines,
    text_lines,
    write_report,
)
from tests.replay.support.outcomes import MS, outcome
from tests.replay.support.reports import every_kind, full, made, produced

Sections = dict[str, list[dict[str, Any]]]

_MEASURED = ("_p50_ms", "_p95_ms", "_p99_ms")
"""Ends of the columns that a merged report knows to a thousandth."""


def sections(report: Report) -> Sections:
    found: Sections = defaultdict(list)
    for line in ndjson_lines(report):
        row = json.loads(line)
        found[row.pop("section")].append(row)
    return found


def exact(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if not k.endswith(_MEASURED)} for row in rows]


def saved(folder: Path, name: str, report: Report) -> Path:
    file = folder / f"{name}.ndjson"
    write_report(report, file)
    return file


@pytest.mark.parametrize("deep", ["[" * 100_000, '{"a":' * 100_000])
def test_deeply_nested_json_is_an_error(tmp_path: Path, deep: str) -> None:
    file = tmp_path / "deep.ndjson"
    file.write_text(deep)
    with pytest.raises(UsageError, match=r"deep\.ndjson: is not a report of replay as \.ndjson"):
        merge_reports([file])


@pytest.mark.long
def test_rows_with_other_values_are_read_or_refused(tmp_path: Path) -> None:
    """In the first row of each section, each value is replaced by one of another type."""
    lines = saved(tmp_path, "a", full()).read_text().splitlines()
    others = itertools.cycle((None, "x", -1, [], {}, [[]], 1e308))
    file, seen, refused = tmp_path / "b.ndjson", set(), 0
    for number, line in enumerate(lines):
        row = json.loads(line)
        if row["section"] in seen:
            continue
        seen.add(row["section"])
        for name in row:
            changed = json.dumps(row | {name: next(others)})
            file.write_text("\n".join([*lines[:number], changed, *lines[number + 1 :]]))
            with suppress(UsageError):
                merge_reports([file])
                continue
            refused += 1
    assert refused


def test_a_single_report_merged_is_unchanged(tmp_path: Path) -> None:
    report = full()
    merged = sections(merge_reports([saved(tmp_path, "a", report)]))
    before = sections(report)
    assert merged.keys() == before.keys()
    for name in before.keys() - {"about", "latency", "field", "accepted", "upgrade", "incomplete"}:
        assert exact(merged[name]) == exact(before[name]), name
    for name in ("field", "accepted", "upgrade", "incomplete"):
        assert merged[name] == before[name], name
    for name in ("api", "copy"):
        for one, other in zip(before[name], merged[name], strict=True):
            measured = {k: v or 0 for k, v in one.items() if k.endswith(_MEASURED)}
            assert {k: other[k] or 0 for k in measured} == pytest.approx(measured, rel=1e-3)
    assert merged["about"][0]["options"] == before["about"][0]["options"]


def test_counts_and_verdicts_are_combined(tmp_path: Path) -> None:
    good = made(outcome("Produce", 7, produced(), produced()), captured=3, prefix="a-")
    bad = made(*every_kind(), captured=20, prefix="b-")
    bad.add_logs(0, [UnbalancedLog("a-b", 0, "why"), UnbalancedLog("a-b", 0, "why")])
    files = [saved(tmp_path, "good", good), saved(tmp_path, "bad", bad)]
    merged = merge_reports(files)
    assert not merged.passed
    assert merge_reports(files[:1]).passed
    for name in (
        "captured",
        "sent",
        "left_out",
        "never_reached",
        "same",
        "missing",
        "not_balanced",
    ):
        both = [report.summary()[name] for report in (good, bad)]
        assert merged.summary()[name] == sum(both), name
    rows = merged.copy_rows()
    assert [(row["copy"], row["passed"]) for row in rows] == [("a-", True), ("b-", False)]
    assert merged.unbalanced_rows() == [{"count": 2, "logs": ["a-b-0"], "reason": "why"}]
    assert len(list(merged.differences())) == bad.difference_count
    assert merged.about.row()["options"]["prefix"] == ["a-", "b-"]
    assert merge_reports(files, ["nothing"]).passed


def test_merged_reports_can_be_merged(tmp_path: Path) -> None:
    files = [
        saved(tmp_path, name, made(*every_kind(), captured=20, prefix=f"{name}-"))
        for name in ("a", "b", "c")
    ]
    two = saved(tmp_path, "two", merge_reports(files[:2]))
    nested, flat = (sections(merge_reports(each)) for each in ([two, files[2]], files))
    for name in flat.keys() - {"about"}:
        assert exact(nested[name]) == exact(flat[name]), name


def test_latencies_of_all_requests_are_exact_to_a_thousandth(tmp_path: Path) -> None:
    """Compared with one process for all requests."""
    rng = np.random.default_rng(5)
    parts = [rng.integers(MS, 90 * MS, 70_000), rng.integers(80 * MS, 900 * MS, 100)]
    whole = _measured("x-", np.concatenate(parts))
    files = [
        saved(tmp_path, str(number), _measured(f"{number}-", latencies))
        for number, latencies in enumerate(parts)
    ]
    merged = merge_reports(files, ["latency:p99>80ms"])
    for name, value in whole.apis["Produce"].replayed.row("replayed").items():
        assert merged.api_rows()[0][name] == pytest.approx(value, rel=2e-3)
    (limit,) = merged.limit_rows()
    assert limit["replayed_ms"] > 80
    assert not merged.passed


def _measured(prefix: str, latencies_ns: Any) -> Report:
    report = made(outcome("Produce", 7, produced(), produced()), prefix=prefix)
    nothing = np.zeros(len(latencies_ns), np.int64)
    report.plan.latencies_ns = lambda numbers: nothing  # type: ignore[method-assign]
    steps = np.zeros(len(latencies_ns), np.int64)
    changes: Any = {}
    report.add_batch(BatchedOutcome("Produce", steps, nothing, latencies_ns, changes))
    return report


def test_all_formats_of_a_merged_report(tmp_path: Path) -> None:
    merged = merge_reports([saved(tmp_path, name, made(prefix=name)) for name in ("a", "b")])
    text = "\n".join(text_lines(merged))
    assert text.startswith("target:9092: ")
    assert "Copies\nnames" in text
    assert "a.ndjson" in text
    assert "<h3>Copies</h3>" in "\n".join(html_lines(merged))
    assert '<testcase classname="kafkashark.replay" name="Produce">' in "\n".join(
        junit_lines(merged)
    )


def test_an_early_end_of_a_part_is_one_of_the_merged_report(tmp_path: Path) -> None:
    files = [
        saved(tmp_path, "a", made(ended="interrupted", prefix="a")),
        saved(tmp_path, "b", made(prefix="b")),
    ]
    assert merge_reports(files, ["nothing"]).ended == "a.ndjson: interrupted"


def _part(number: int, count: int, names: str = "") -> dict[str, Any]:
    return {"part": f"{number}/{count}", "names": names, "steps": 1, "of_steps": count}


def test_each_set_of_parts_must_be_complete(tmp_path: Path) -> None:
    """Two hosts may replay all parts of a capture, and two others the same under other names."""
    files = []
    for names, number in (("a-", 1), ("a-", 2), ("b-", 2)):
        report = made(outcome("Produce", 7, produced(), produced()), captured=1, prefix=names)
        report.about.parts = [_part(number, 2, names)]
        files.append(saved(tmp_path, f"{names}{number}", report))
    assert not merge_reports(files[:2]).missing_parts
    merged = merge_reports(files)
    assert merged.missing_parts == ["1/2"]
    assert (merged.steps, merged.captured) == (2, 3)


def _of_parts(folder: Path, *logs: SharedLog) -> Report:
    """Merge reports of parts of one log; each has the given stretches."""
    files = []
    for number, log in enumerate(logs, 1):
        report = made(outcome("Produce", 7, produced(), produced()), captured=1)
        report.about.parts = [_part(number, len(logs))]
        report.add_logs(0, [], [log])
        files.append(saved(folder, str(number), report))
    return merge_reports(files)


def test_parts_that_cover_a_log_are_balanced(tmp_path: Path) -> None:
    one = SharedLog("orders", 0, 9, 0, [Stretch(100, 0, 3, 1), Stretch(106, 6, 3, 3)])
    other = SharedLog("orders", 0, 6, 0, [Stretch(103, 3, 3, 2)])
    merged = _of_parts(tmp_path, one, other)
    assert merged.passed
    assert not merged.unbalanced_rows()
    assert merged.steps == 2


def test_offsets_given_to_two_parts_are_a_difference(tmp_path: Path) -> None:
    one = SharedLog("orders", 0, 6, 0, [Stretch(100, 0, 4, 1)])
    other = SharedLog("orders", 0, 6, 0, [Stretch(104, 2, 4, 2)])
    merged = _of_parts(tmp_path, one, other)
    assert not merged.passed
    assert merged.verdicts[Verdict.DIFFERS] == 1
    assert sum(merged.verdicts.values()) == 2
    (field,) = merged.field_rows()
    assert field["field"] == "Produce.topic_data[*].partition_data[*].records"
    (row,) = merged.differences()
    assert (row["step"], row["path"]) == (2, "topic_data[orders].partition_data[0].records")
    for lines in (text_lines(merged), html_lines(merged), junit_lines(merged)):
        assert "step 2: Produce" in "\n".join(lines)


def test_offsets_without_a_part_leave_a_log_unbalanced(tmp_path: Path) -> None:
    one = SharedLog("orders", 0, 7, 0, [Stretch(100, 0, 3, 1)])
    other = SharedLog("orders", 0, 8, 1, [Stretch(103, 4, 3, 2)])
    merged = _of_parts(tmp_path, one, other)
    assert merged.passed
    (row,) = merged.unbalanced_rows()
    assert row["logs"] == ["orders-0"]
    assert "2 offsets" in row["reason"]
    confirmed = other._replace(unconfirmed=2)
    assert not _of_parts(tmp_path, one, confirmed).unbalanced_rows()


def test_a_missing_part_is_an_error_case(tmp_path: Path) -> None:
    report = made(captured=1)
    report.about.parts = [_part(1, 2)]
    merged = merge_reports([saved(tmp_path, "a", report)], ["nothing"])
    assert not merged.passed
    assert '<error message="no report of part 2/2"/>' in "\n".join(junit_lines(merged))


def test_copies_have_their_own_verdicts() -> None:
    options = PlayOptions(scale=2, loop=2, stagger_s=2)
    good, bad = produced(), produced(error_code=10)
    outcomes = [
        outcome("Produce", 7, good, bad if number == 3 else good, pass_number=number)
        for number in range(4)
    ]
    report = made(*outcomes, play_options=options, prefix="p-")
    rows = report.copy_rows()
    assert [(row["copy"], row["starts_after_s"]) for row in rows] == [("p-", 0), ("p-copy1-", 2)]
    assert [(row["sent"], row["error_changed"], row["passed"]) for row in rows] == [
        (2, 0, True),
        (2, 1, False),
    ]
    assert report.verdicts[Verdict.SAME] == 3


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["no json"], "is not a report"),
        (["{}"], "is not a report"),
        (["[]"], "is not a report"),
        (['{"section": "api"}'], "is not a report"),
        (
            ['{"section": "summary", "target": "a"}', '{"section": "about", "options": {}}'],
            "by a version",
        ),
    ],
)
def test_a_file_other_than_a_report_is_an_error(
    tmp_path: Path, lines: list[str], said: str
) -> None:
    file = tmp_path / "a.ndjson"
    file.write_text("\n".join(lines))
    with pytest.raises(UsageError, match=said):
        merge_reports([file])


def test_unrelated_reports_are_an_error(tmp_path: Path) -> None:
    one, other = made(prefix="a-"), made(prefix="b-")
    one.about.learn_target("c-1", {}, 1, False)
    other.about.learn_target("c-2", {}, 1, False)
    files = [saved(tmp_path, "a", one), saved(tmp_path, "b", other)]
    with pytest.raises(UsageError, match="of different clusters"):
        merge_reports(files)
    with pytest.raises(UsageError, match="are the same report"):
        merge_reports([files[0], files[0]])
    one.trials = [{"trial": 1, "latency": "", "why": "", "holds": False}]
    one.about.options["latency-limit"] = ["p99>1ms"]
    with pytest.raises(UsageError, match="is of --speed auto"):
        merge_reports([saved(tmp_path, "c", one)])
    with pytest.raises(UsageError, match="cannot be read"):
        merge_reports([tmp_path / "none.ndjson"])
    with pytest.raises(UsageError, match="needs reports"):
        merge_reports([])
