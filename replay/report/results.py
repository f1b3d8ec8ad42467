"""The results of a replay: numbers, differences, and the rows of its report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Protocol

from replay.compare.ignore_rules import Noise
from replay.compare.log_balance import UnbalancedLog
from replay.compare.step_verdict import FAILING_VERDICTS
from replay.model.outcome import Verdict
from replay.model.row import Row
from replay.options.difference_baseline import DifferenceKey
from replay.options.pass_criteria import Criteria
from replay.report.counters import (
    ApiCounters,
    CopyCounters,
    Durations,
    ExampleCounter,
    ReasonCounter,
)
from replay.report.difference_table import DifferenceTable
from replay.report.equivalent_responses import EquivalentResponses
from replay.report.unsupported import UnsupportedRequests

BY_PLAN, BY_REPLAY = "plan", "replay"
"""Origins of exclusions: the plan, or the replay."""


class Origin(Protocol):
    """Captures, options and target of a report."""

    def row(self) -> Row:
        """Return them as a row of the report."""


class Results:
    """
    The results of a replay so far.

    Args:
        about: Captures, options and target.
        target: The target as the user named it.
        criteria: The pass criteria.
        noise: The ignore rules.
        shows_payloads: Whether keys, values and headers of records are shown.

    Attributes:
        about: Captures, options and target.
        target: The target as the user named it.
        criteria: The pass criteria.
        noise: The ignore rules.
        steps: The number of captured requests of one pass.
        passes: The number of passes of all copies.
        captured: The number of captured requests, in all passes.
        ended: The reason for an early end, or for an empty replay; else empty.
        missing_parts: Parts of the capture without a report in a merged one: `3/4`.
        elapsed_ns: Duration of the replay.
        played_ns: The time from the first due request to the last response.
        trials: The trials of `--speed auto`, as rows.
        found_speed: The highest speed sustained by the target in a trial; None without one.
        apis: API -> its verdicts and latencies, in order of first use.
        copies: The copies of the capture, each with its verdicts and latencies.
        lags: Delays of requests against the plan.
        failures: Reasons for missing responses, with counts.
        left_out: `plan` or `replay` -> reasons for excluded steps, with counts.
        unsupported: Requests that the target can't do.
        not_judged: Reasons why responses were not awaited.
        waits: API -> waiting times of requests at the end of the replay.
        equivalent_responses: The equivalent responses with their reasons.
        changes: Role and rule -> the substitutions.
        versions: API, captured version, version sent -> number of requests.
        split: Number of requests sent to more than one broker.
        left_behind: Resources left on the target, and the reasons.
        unbalanced_logs: Logs that could not be balanced, and the reasons; in all passes.
        shared_logs: Logs written by several parts, with the writes of this part, as rows.
        sent: Number of requests sent; each part of a split request counts.
        missing_prerequisites: Number of failing responses that may follow from omitted requests.
        verdict_counts: Verdict -> the number of steps.
        difference_table: The differences.
    """

    def __init__(
        self,
        about: Origin,
        target: str,
        criteria: Criteria,
        noise: Noise,
        shows_payloads: bool = False,
    ) -> None:
        self.about = about
        self.target = target
        self.criteria = criteria
        self.noise = noise
        self.steps = self.captured = 0
        self.passes = 1
        self.ended = ""
        self.missing_parts: list[str] = []
        self.elapsed_ns = self.played_ns = 0
        self.trials: list[Row] = []
        self.found_speed: float | None = None
        self.apis: dict[str, ApiCounters] = {}
        self.copies: list[CopyCounters] = []
        self.lags = Durations()
        self.failures = ReasonCounter()
        self.left_out = {BY_PLAN: ReasonCounter(), BY_REPLAY: ReasonCounter()}
        self.not_judged = ReasonCounter()
        self.unsupported = UnsupportedRequests()
        self.waits: dict[str, Durations] = {}
        self.equivalent_responses = EquivalentResponses()
        self.changes: dict[tuple[str, str], ExampleCounter] = {}
        self.versions: Counter[tuple[str, int, int]] = Counter()
        self.left_behind: list[str] = []
        self.unbalanced_logs: list[UnbalancedLog] = []
        self.shared_logs: list[Row] = []
        self.split = 0
        self.sent = 0
        self.missing_prerequisites = 0
        self.verdict_counts: Counter[Verdict] = Counter()
        self.difference_table = DifferenceTable(criteria.accepted, shows_payloads)

    @property
    def verdicts(self) -> Mapping[Verdict, int]:
        """The number of steps with each verdict, including those left out by the plan."""
        return {verdict: self.verdict_counts[verdict] for verdict in Verdict}

    @property
    def failing(self) -> int:
        """The number of responses that differ from the captured ones and are not accepted."""
        return sum(self.verdict_counts[verdict] for verdict in FAILING_VERDICTS)

    @property
    def passed(self) -> bool:
        """Whether the replay ran to its end and meets all pass criteria."""
        fails = any(self.verdict_counts[verdict] for verdict in self.criteria.verdicts)
        fails = fails or (self.criteria.wants_balance and bool(self.unbalanced_logs))
        fails = fails or (self.criteria.wants_support and bool(self.unsupported.failing))
        fails = fails or (bool(self.trials) and self.found_speed is None)
        return not (fails or self.ended or self.missing_parts or self.limit_rows())

    @property
    def found_rate(self) -> float | None:
        """The requests per second at the speed that was found."""
        if self.found_speed is None:
            return None
        return max(float(row["requests_per_s"]) for row in self.trials if row["holds"])

    @property
    def is_begun(self) -> bool:
        """Whether any step has an outcome, even if it was left out."""
        return bool(sum(self.verdict_counts.values()))

    @property
    def replayed(self) -> int:
        """The number of captured requests that were sent."""
        return sum(self.verdict_counts.values()) - self.verdict_counts[Verdict.LEFT_OUT]

    @property
    def never_reached(self) -> int:
        """The number of captured requests that the replay did not reach."""
        return max(self.captured - sum(self.verdict_counts.values()), 0)

    @property
    def difference_count(self) -> int:
        """The number of differing fields in all responses, including accepted ones."""
        return len(self.difference_table)

    @property
    def accepted_count(self) -> int:
        """The number of accepted differences."""
        return self.difference_table.accepted_count

    def differences(self, most: int | None = None) -> Iterator[Row]:
        """Yield the differences in the order of their discovery, at most `most`."""
        return self.difference_table.rows(most)

    def equivalents(self, most: int | None = None) -> Iterator[Row]:
        """Yield the equivalent responses with their reasons, at most `most`."""
        return self.equivalent_responses.rows(most)

    def summary(self) -> Row:
        """Return the summary row: the numbers of the replay."""
        seconds = self.elapsed_ns / 1e9
        first = next((row for row in self.field_rows() if not row["accepted"]), None)
        return {
            "target": self.target,
            "passed": self.passed,
            "ended": self.ended,
            "found_speed": self.found_speed,
            "found_requests_per_s": self.found_rate,
            "missing_parts": self.missing_parts,
            "steps": self.steps,
            "passes": self.passes,
            "copies": len(self.copies),
            "captured": self.captured,
            "sent": self.replayed,
            "never_reached": self.never_reached,
            **{verdict.value: count for verdict, count in self.verdicts.items()},
            "differences": self.difference_count,
            "accepted_differences": self.accepted_count,
            "missing_prerequisites": self.missing_prerequisites,
            "unsupported": self.unsupported.failing,
            "not_balanced": len(self.unbalanced_logs),
            "shared_logs": len(self.shared_logs),
            "limits_exceeded": len(self.limit_rows()),
            "first_difference": first and _first_text(first),
            "requests_sent": self.sent,
            "split": self.split,
            "elapsed_s": round(seconds, 3),
            "requests_per_s": round(self.sent / seconds, 1) if seconds else None,
            **self.lags.row("lag"),
        }

    def api_rows(self) -> list[Row]:
        """Return a row for each API: verdicts, and captured and replayed latencies."""
        return [
            {
                "api": name,
                **{verdict.value: known.verdicts[verdict] for verdict in Verdict},
                **known.captured.row("captured"),
                **known.replayed.row("replayed"),
            }
            for name, known in sorted(self.apis.items())
        ]

    def connection_rows(self) -> list[Row]:
        """Return a row for each captured connection: its completeness."""
        return []

    def copy_rows(self) -> list[Row]:
        """Return a row for each copy of the capture: verdicts, latencies and lateness."""
        return [each.row(self.criteria) for each in self.copies]

    def latency_rows(self) -> list[Row]:
        """Return all latencies and delays as counts by duration, for merging of reports."""
        found = [
            *(("api", name, "captured", known.captured) for name, known in self.apis.items()),
            *(("api", name, "replayed", known.replayed) for name, known in self.apis.items()),
            *(("copy", known.prefix, "replayed", known.replayed) for known in self.copies),
            *(("copy", known.prefix, "late", known.lags) for known in self.copies),
            ("all", "", "late", self.lags),
        ]
        return [
            {"of": of, "name": name, "side": side, **histogram}
            for of, name, side, durations in found
            if (histogram := durations.histogram()) is not None
        ]

    def left_out_rows(self) -> list[Row]:
        """
        Return the reasons why requests were not sent, the most frequent first.

        They were left out by the plan, or by the replay: a request could not be rewritten, or the
        target does not offer its API. The counts add up to the verdict `left_out`.
        """
        return [
            {"by": by, **row} for by, reasons in self.left_out.items() for row in reasons.rows()
        ]

    def not_judged_rows(self) -> list[Row]:
        """Return the reasons why responses to sent requests were not awaited."""
        return self.not_judged.rows()

    def reason_rows(self) -> list[Row]:
        """Return the reasons for equivalence; a response may have several."""
        return self.equivalent_responses.reasons.rows()

    def change_rows(self) -> list[Row]:
        """Return the substitutions by role and rule, each with an example."""
        return [
            {"role": role, "rule": why, "count": seen.count, **seen.first}
            for (role, why), seen in sorted(self.changes.items())
        ]

    def version_rows(self) -> list[Row]:
        """Return the requests sent in another version than captured, by API and versions."""
        return [
            {"api": api, "captured_version": old, "version_sent": new, "count": count}
            for (api, old, new), count in sorted(self.versions.items())
        ]

    def field_rows(self) -> list[Row]:
        """
        Return the differing fields with examples; error codes also by both errors.

        They are in the order of the first request with a difference there, so that causes precede
        their consequences.
        """
        return self.difference_table.field_rows()

    @property
    def fields(self) -> dict[str, ExampleCounter]:
        """The number of differences for each field pattern."""
        return self.difference_table.fields

    @property
    def refusals(self) -> Counter[str]:
        """Reasons why steps could not be sent, or their responses not awaited, with counts."""
        return Counter(dict(self.left_out[BY_REPLAY])) + Counter(dict(self.not_judged))

    def stale_rows(self) -> list[Row]:
        """Return lines of `--accept` without a difference; none if steps were not reached."""
        whole = not self.ended and not self.never_reached
        return [{"stale": line} for line in self.criteria.accepted.stale] if whole else []

    def limit_rows(self) -> list[Row]:
        """Return the exceeded latency limits, by API."""
        found = (
            limit.violation(name, known.captured, known.replayed)
            for limit in self.criteria.limits
            for name, known in sorted(self.apis.items())
        )
        return [row for row in found if row is not None]

    def acceptable(self) -> list[DifferenceKey]:
        """Return the differing fields that `--accept` may list: `--upgrade` accepts the others."""
        unsupported = map(DifferenceKey.unsupported, self.unsupported.unsent_apis)
        return [*self.difference_table.acceptable(), *unsupported]

    def failure_rows(self) -> list[Row]:
        """Return the reasons for captured responses without live counterpart."""
        return self.failures.rows()

    def left_behind_rows(self) -> list[Row]:
        """Return the resources left on the target."""
        return [{"left_behind": what} for what in self.left_behind]

    def unbalanced_rows(self) -> list[Row]:
        """Return the reasons why logs could not be balanced, with the logs."""
        logs: dict[str, list[str]] = {}
        for each in self.unbalanced_logs:
            logs.setdefault(each.why, []).append(f"{each.topic}-{each.partition}")
        return [
            {"count": len(names), "logs": sorted(set(names)), "reason": why}
            for why, names in logs.items()
        ]

    def ignored_rows(self) -> list[Row]:
        """Return the number of ignored differences for each ignore rule."""
        return [
            {"pattern": pattern, "count": self.noise.ignored[pattern]}
            for pattern in self.noise.patterns
        ]


def _first_text(field: Row) -> str:
    errors = f": {field['errors']}" if field["errors"] else ""
    return f"step {field['first_step']}: {field['field']}{errors}"
