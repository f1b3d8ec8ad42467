"""One report of several: of the parts of a capture, or of several replays at the same target."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dissector.errors import UsageError
from dissector.small_files import MAX_FILE_BYTES
from replay.compare.ignore_rules import Noise
from replay.compare.log_balance import UnbalancedLog
from replay.mapping.appended_ranges import Fault
from replay.model.outcome import Verdict
from replay.model.row import Row
from replay.options.difference_baseline import DifferenceBaseline
from replay.options.pass_criteria import Criteria
from replay.report.counters import ApiCounters, CopyCounters, ExampleCounter
from replay.report.provenance import MOCK_BROKER, MergedOrigin, source_of
from replay.report.report import Report
from replay.report.shared_records import PRODUCE, SharedRecords, shared_logs

_LISTS = frozenset({"difference", "equivalent"})
"""Sections that grow with the capture: they are read again where they are needed."""

_FIELDS = ("field", "accepted", "incomplete", "upgrade", "documented")
"""The sections of differing fields, by what accepts them."""


_WRONG_ROW = (
    ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError
)  # fmt: skip
"""Errors of rows that are not JSON, or have other fields, values or types than ours."""

_SEVERAL_TARGETS = "its parts were played at several targets"


class _Rows:
    """
    The rows of one report in ndjson.

    Attributes:
        file: The file.
        summary: The summary.
        about: Captures, options and target.
    """

    def __init__(self, file: str | Path) -> None:
        self.file = file
        self._sections: dict[str, list[Row]] = defaultdict(list)
        for section, row in self._read():
            if section not in _LISTS:
                self._sections[section].append(row)
        firsts = [next(iter(self._sections[each]), {}) for each in ("summary", "about")]
        self.summary, self.about = firsts
        if "target" not in self.summary or not self.about:
            raise UsageError(f"{file}: is not a report of replay as .ndjson")
        if "reports" not in self.about:
            raise UsageError(f"{file}: was written by a version whose reports can't be merged")

    def __getitem__(self, section: str) -> Iterable[Row]:
        if section not in _LISTS:
            return self._sections[section]
        return (row for name, row in self._read() if name == section)

    def _read(self) -> Iterator[tuple[str, Row]]:
        try:
            with Path(self.file).open(encoding="utf-8") as lines:
                while line := lines.readline(MAX_FILE_BYTES):
                    row = json.loads(line)
                    yield str(row.pop("section")), row
        except OSError as error:
            raise UsageError(f"{self.file}: cannot be read ({error.strerror})") from None
        except _WRONG_ROW:
            raise UsageError(f"{self.file}: is not a report of replay as .ndjson") from None


class MergedReport(Report):
    """
    A report of several.

    Args:
        reports: The rows of each.
        criteria: The pass criteria.
    """

    def __init__(self, reports: Sequence[_Rows], criteria: Criteria) -> None:
        origin = MergedOrigin([(each.file, each.about) for each in reports])
        targets = dict.fromkeys(each.summary["target"] for each in reports)
        noise = Noise(row["pattern"] for each in reports for row in each["ignored"])
        super().__init__(origin, ",".join(targets), criteria, noise)
        self.elapsed_ns = _elapsed_ns(reports)
        self.steps, self.passes = _extent(reports)
        self.missing_parts = origin.missing_parts
        self._connections: dict[tuple[Any, ...], Row] = {}
        self._copies: dict[str, CopyCounters] = {}
        for each in reports:
            self._add_summary(each)
            self._add_reasons(each)
            self._add_apis_and_copies(each)
            self._add_durations(each["latency"])
            self._add_substitutions(each)
            self._add_logs(each["not_balanced"])
            self.shared_logs += each["shared_log"]
            fields = (row for section in _FIELDS for row in each[section])
            self.difference_table.absorb(fields, each["difference"])
            self.equivalent_responses.absorb(each["reason"], each["equivalent"])
            for row in each["connection"]:
                self._connections.setdefault((row["connection"], row["client"]), row)
        if not self.missing_parts:
            self._balance_shared_logs(len(_clusters(reports)) <= 1)
        self.copies = list(self._copies.values())

    def _add_summary(self, each: _Rows) -> None:
        summary = each.summary
        self.captured += summary["captured"]
        self.split += summary["split"]
        self.sent += summary["requests_sent"]
        self.missing_prerequisites += summary["missing_prerequisites"]
        if summary["ended"]:
            ended = f"{Path(each.file).name}: {summary['ended']}"
            self.ended = f"{self.ended}; {ended}" if self.ended else ended
        for verdict in Verdict:
            self.verdict_counts[verdict] += summary[verdict.value]

    def _add_reasons(self, each: _Rows) -> None:
        for row in each["left_out"]:
            self.left_out[row["by"]].absorb([row])
        self.not_judged.absorb(each["not_judged"])
        self.unsupported.absorb(each["unsupported"])
        self.failures.absorb(each["failure"])
        self.left_behind += [row["left_behind"] for row in each["left_behind"]]

    def _add_apis_and_copies(self, each: _Rows) -> None:
        for row in each["api"]:
            known = self.apis.setdefault(row["api"], ApiCounters())
            for verdict in Verdict:
                known.verdicts[verdict] += row[verdict.value]
        for row in each["copy"]:
            copy = self._copies.setdefault(
                row["copy"], CopyCounters(row["copy"], row["starts_after_s"])
            )
            copy.not_balanced += row["not_balanced"]
            for verdict in Verdict:
                copy.verdicts[verdict] += row[verdict.value]

    def _add_durations(self, rows: Iterable[Row]) -> None:
        for row in rows:
            if row["of"] == "api":
                known = self.apis[row["name"]]
                found = known.captured if row["side"] == "captured" else known.replayed
            elif row["of"] == "copy":
                copy = self._copies[row["name"]]
                found = copy.lags if row["side"] == "late" else copy.replayed
            else:
                found = self.lags
            found.absorb(row)

    def _add_substitutions(self, each: _Rows) -> None:
        for row in each["version"]:
            key = row["api"], row["captured_version"], row["version_sent"]
            self.versions[key] += row["count"]
        for row in each["change"]:
            seen = self.changes.setdefault((row["role"], row["rule"]), ExampleCounter())
            seen.count += row["count"]
            seen.examples.append({name: row[name] for name in ("path", "captured", "sent")})
        for row in each["ignored"]:
            self.noise.ignored[row["pattern"]] += row["count"]

    def _add_logs(self, rows: Iterable[Row]) -> None:
        for row in rows:
            logs = [each.rpartition("-") for each in row["logs"]]
            logs += logs[:1] * (row["count"] - len(logs))  # the same logs in further passes
            self.unbalanced_logs += [
                UnbalancedLog(topic, int(partition), row["reason"]) for topic, _, partition in logs
            ]

    def _balance_shared_logs(self, is_one_target: bool) -> None:
        """Balance the logs that several parts wrote to, now that all of them are known."""
        for log in shared_logs(self.shared_logs):
            copy = self._copies.get(log.names)
            for fault in log.faults() if is_one_target else ():
                self._add_fault(log, fault, copy)
            why = log.why_unbalanced() if is_one_target else _SEVERAL_TARGETS
            if why:
                self.unbalanced_logs.append(UnbalancedLog(log.topic, log.partition, why))
                if copy is not None:
                    copy.not_balanced += 1
        self.shared_logs = []

    def _add_fault(self, log: SharedRecords, fault: Fault, copy: CopyCounters | None) -> None:
        """Add a contradiction between the parts as a difference of a Produce request."""
        verdicts = [self.verdict_counts, self.apis[PRODUCE].verdicts]
        for counts in verdicts + ([copy.verdicts] if copy is not None else []):
            passed = max((Verdict.SAME, Verdict.EQUIVALENT), key=counts.__getitem__)
            counts[passed] -= 1
            counts[Verdict.DIFFERS] += 1
        row = log.difference_row(fault)
        self.difference_table.absorb([log.field_row(row)], [row])

    def connection_rows(self) -> list[Row]:
        """Return a row for each captured connection: its completeness."""
        return list(self._connections.values())


def merge_reports(files: Iterable[str | Path], fail_on: Iterable[str] = ()) -> Report:
    """
    Make one report of several.

    Args:
        files: The reports, as `.ndjson`.
        fail_on: What `Report.passed` depends on, as for `replay`; by default as in the reports.

    Raises:
        UsageError: A file is not such a report, or they don't belong together.
    """
    reports = [_Rows(file) for file in files]
    if not reports:
        raise UsageError("--merge needs reports as .ndjson")
    try:
        return _merged(reports, fail_on)
    except _WRONG_ROW as error:
        names = ", ".join(str(each.file) for each in reports)
        what = f"{type(error).__name__}: {error}"
        raise UsageError(f"{names}: a row is not one of a report of replay ({what})") from None


def _merged(reports: Sequence[_Rows], fail_on: Iterable[str]) -> Report:
    _check(reports)
    words = list(fail_on) or _common(reports, "fail-on", lambda each: _options(each).get("fail-on"))
    stale = [{row["stale"] for row in each["stale"]} for each in reports]
    accepted = DifferenceBaseline(sorted(set.intersection(*stale)))
    return MergedReport(reports, Criteria.of(words, accepted))


def _options(report: _Rows) -> Row:
    options: Row = report.about["options"]
    return options


def _common(reports: Sequence[_Rows], what: str, find: Callable[[_Rows], Any]) -> list[str]:
    """Return an option that all reports must have in common."""
    values = {find(each) for each in reports}
    if len(values) > 1:
        raise UsageError(f"--merge: the reports have different --{what}; give --{what} here")
    return [value for value in values if value]


def _check(reports: Sequence[_Rows]) -> None:
    """
    Check that reports belong together.

    Raises:
        UsageError: Two are the same, or they are of different targets.
    """
    seen: dict[str, _Rows] = {}
    for each in reports:
        if each.summary["found_speed"] is not None or list(each["trial"]):
            raise UsageError(
                f"--merge: {each.file} is of --speed auto, which has a speed of its own"
            )
        same = seen.setdefault(json.dumps([each.about, each.summary], sort_keys=True), each)
        if same is not each:
            raise UsageError(f"--merge: {same.file} and {each.file} are the same report")
    targets = list(_clusters(reports).values())
    if len(targets) > 1 and targets[0].about["target"]["version"] != MOCK_BROKER:
        one, other = targets[:2]
        raise UsageError(f"--merge: {one.file} and {other.file} are of different clusters")


def _clusters(reports: Sequence[_Rows]) -> dict[str, _Rows]:
    """Return the cluster ids of the targets, each with the first report that has it."""
    found: dict[str, _Rows] = {}
    for each in reports:
        if cluster := each.about["target"].get("cluster_id"):
            found.setdefault(cluster, each)
    return found


def _elapsed_ns(reports: Sequence[_Rows]) -> int:
    """Return the time from the first beginning of a replay to the last end."""
    spans = []
    for each in reports:
        begin = np.datetime64(each.about["replayed_at"].rstrip("Z"), "ns").astype(int)
        spans.append((begin, begin + round(each.summary["elapsed_s"] * 1e9)))
    return int(max(end for _, end in spans) - min(begin for begin, _ in spans))


def _extent(reports: Sequence[_Rows]) -> tuple[int, int]:
    """Return the captured requests of one pass of all captures and parts, and the passes."""
    steps: dict[str, int] = {}
    passes: defaultdict[str, int] = defaultdict(int)
    for each in reports:
        source = json.dumps(source_of(each.about))
        steps[source] = max(steps.get(source, 0), each.summary["steps"])
        passes[source] += each.summary["passes"]
    return sum(steps.values()), max(passes.values())
