"""The results of a replay, collected step by step in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial

import numpy as np

from dissector.protocol.embedded.sasl_tokens import MASK
from dissector.view.text.value_text import jsonable
from replay.compare.log_balance import UnbalancedLog
from replay.compare.step_verdict import FAILING_VERDICTS
from replay.fields.field_layout import Role
from replay.model.outcome import BatchedOutcome, Change, Difference, Outcome, Verdict
from replay.model.row import Row
from replay.model.step import Step
from replay.options.difference_baseline import DifferenceKey
from replay.options.target_settings import TargetSettings
from replay.plan.plan import Plan
from replay.report.counters import ApiCounters, Durations, ExampleCounter, ReasonCounter
from replay.report.difference_table import DifferenceTable
from replay.report.equivalent_responses import EquivalentResponses
from replay.report.provenance import Provenance

_VERDICTS = tuple(Verdict)

BY_PLAN, BY_REPLAY = "plan", "replay"
"""What left a request out: the plan, or the replay itself."""


class Results:
    """
    The results of a replay so far.

    Args:
        plan: The plan.
        settings: Target and options.

    Attributes:
        about: Captures, options and target.
        target: The target as the user named it.
        noise: The ignore rules.
        criteria: The pass criteria.
        ended: Why the replay ended early, or sent nothing; else empty.
        elapsed_ns: Duration of the replay.
        apis: API -> its verdicts and latencies, in order of first use.
        lags: How much later than planned requests were sent.
        failures: Why steps have no response, and how often.
        left_out: `plan` or `replay` -> the reasons why it left steps out.
        not_judged: Why responses were not waited for.
        reasons: Why responses are equivalent.
        changes: Role and rule -> the substitutions.
        versions: API, captured version, version sent -> number of requests.
        split: Number of requests sent to more than one broker.
        left_behind: What could not be cleaned up on the target, and why.
        unbalanced_logs: The logs that could not be balanced, and why; in all passes.
        sent: Number of requests sent; each part of a split request counts.
        missing_prerequisites: Number of failing responses that may follow from omitted requests.
    """

    def __init__(self, plan: Plan, settings: TargetSettings) -> None:
        self.plan = plan
        self.about = Provenance.of(plan, settings)
        self.target = settings.to
        self.noise = settings.noise
        self.criteria = settings.criteria
        self.ended = ""
        self.elapsed_ns = 0
        self.apis: dict[str, ApiCounters] = {}
        self.lags = Durations()
        self.failures = ReasonCounter()
        self.left_out = {BY_PLAN: ReasonCounter(), BY_REPLAY: ReasonCounter()}
        self.not_judged = ReasonCounter()
        self._equivalents = EquivalentResponses()
        self.reasons = self._equivalents.reasons
        self.changes: dict[tuple[str, str], ExampleCounter] = {}
        self.versions: Counter[tuple[str, int, int]] = Counter()
        self.left_behind: list[str] = []
        self.unbalanced_logs: list[UnbalancedLog] = []
        self.split = 0
        self.sent = 0
        self.missing_prerequisites = 0
        self._passes = settings.play_options.loop
        self._verdicts: Counter[Verdict] = Counter()
        self._verdict_of = bytearray(len(plan))
        self._shows_secrets = settings.show_secrets
        self._difference_table = DifferenceTable(settings.criteria.accepted, settings.show_payloads)

    def add(self, outcome: Outcome, verdict: Verdict, differences: Iterable[Difference]) -> None:
        """Add the outcome of a step, its verdict and its differences."""
        step = outcome.step
        api = step.captured.api
        known = self.apis.setdefault(api, ApiCounters())
        if verdict is Verdict.MISSING:
            self.failures.add(outcome.failure, api)
            differences = [Difference("", "a response", f"none: {outcome.failure}")]
        found = self._difference_table.find_keys(api, differences, verdict is Verdict.INCOMPLETE)
        if verdict in FAILING_VERDICTS and found and all(each.accepted_by for each in found):
            verdict = Verdict.ACCEPTED
        self._verdicts[verdict] += 1
        known.verdicts[verdict] += 1
        self._record_verdict(step.number, verdict)
        if verdict is Verdict.LEFT_OUT:
            self.left_out[BY_PLAN if step.left_out else BY_REPLAY].add(outcome.failure, api)
            return
        self._add_sent(outcome, known)
        self._count_missing_prerequisites(step, verdict)
        if verdict is Verdict.NOT_JUDGED:
            self.not_judged.add(outcome.failure, api)
        request = _request_row(outcome)
        if verdict is Verdict.EQUIVALENT:
            self._equivalents.add(request, outcome.reasons)
        for each in found:
            self._difference_table.add(_judged_row(request, step, verdict), each)

    def add_batch(self, batch: BatchedOutcome) -> None:
        """Add steps whose responses equal the captured ones; one like them was added before."""
        count = len(batch.step_numbers)
        self._verdicts[Verdict.SAME] += count
        same = _VERDICTS.index(Verdict.SAME)
        np.frombuffer(self._verdict_of, np.uint8)[batch.step_numbers] = same
        self.sent += count
        known = self.apis[batch.api]
        known.verdicts[Verdict.SAME] += count
        self.lags.add_all(batch.lags_ns)
        known.replayed.add_all(batch.latencies_ns)
        known.captured.add_all(self.plan.latencies_ns(batch.step_numbers))
        for change, times in batch.changes.items():
            self.changes[change].count += times

    def revise(self, step: Step, pass_number: int, difference: Difference) -> None:
        """Add a difference to a step that was added before, in the same pass."""
        api = step.captured.api
        (found,) = self._difference_table.find_keys(api, [difference])
        request = _request_row(Outcome(step, pass_number, version=step.captured.api_version))
        verdict = before = _VERDICTS[self._verdict_of[step.number]]
        if before is Verdict.EQUIVALENT:
            self._equivalents.remove(request)
        if before not in FAILING_VERDICTS:
            verdict = Verdict.ACCEPTED if found.accepted_by else Verdict.DIFFERS
            for verdicts in (self._verdicts, self.apis[api].verdicts):
                verdicts[before] -= 1
                verdicts[verdict] += 1
            self._count_missing_prerequisites(step, verdict)
            self._record_verdict(step.number, verdict)
        self._difference_table.add(_judged_row(request, step, verdict), found)

    def _count_missing_prerequisites(self, step: Step, verdict: Verdict) -> None:
        is_failing = verdict in FAILING_VERDICTS
        self.missing_prerequisites += is_failing and bool(step.missing_prerequisites)

    def _record_verdict(self, number: int, verdict: Verdict) -> None:
        """Record the verdict on a step of the pass: the end of the pass may change it."""
        if number >= len(self._verdict_of):
            self._verdict_of.extend(bytes(number + 1 - len(self._verdict_of)))
        self._verdict_of[number] = _VERDICTS.index(verdict)

    def _add_sent(self, outcome: Outcome, counters: ApiCounters) -> None:
        captured = outcome.step.captured
        self.sent += len(outcome.parts)
        self.split += len(outcome.parts) > 1
        self.lags.add(outcome.lag_ns)
        if outcome.latency_ns is not None:
            counters.replayed.add(outcome.latency_ns)
        if captured.response_time_ns is not None:
            counters.captured.add(captured.response_time_ns - captured.request_time_ns)
        if outcome.parts and outcome.version != captured.api_version:
            self.versions[captured.api, captured.api_version, outcome.version] += 1
        for change in outcome.changes:
            seen = self.changes.setdefault((change.role, change.why), ExampleCounter())
            seen.add(partial(self._change, captured.api, change))

    def _change(self, api: str, change: Change) -> Row:
        values = {"captured": jsonable(change.captured), "sent": jsonable(change.sent)}
        if change.role == Role.TOKEN and not self._shows_secrets:
            values = dict.fromkeys(values, MASK)
        return {"path": f"{api}.{change.path}", **values}

    @property
    def verdicts(self) -> Mapping[Verdict, int]:
        """The number of steps with each verdict, including those left out by the plan."""
        return {verdict: self._verdicts[verdict] for verdict in Verdict}

    @property
    def failing(self) -> int:
        """The number of responses that differ from the captured ones and are not accepted."""
        return sum(self._verdicts[verdict] for verdict in FAILING_VERDICTS)

    @property
    def passed(self) -> bool:
        """Whether the replay ran to its end and meets all pass criteria."""
        fails = any(self._verdicts[verdict] for verdict in self.criteria.verdicts)
        fails = fails or (self.criteria.wants_balance and bool(self.unbalanced_logs))
        return not fails and not self.ended and not self.limit_rows()

    @property
    def is_begun(self) -> bool:
        """Whether any step has an outcome, even if it was left out."""
        return bool(sum(self._verdicts.values()))

    @property
    def captured(self) -> int:
        """The number of captured requests, in all passes."""
        return len(self.plan) * self._passes

    @property
    def replayed(self) -> int:
        """The number of captured requests that were sent."""
        return sum(self._verdicts.values()) - self._verdicts[Verdict.LEFT_OUT]

    @property
    def never_reached(self) -> int:
        """The number of captured requests that the replay did not reach."""
        return max(self.captured - sum(self._verdicts.values()), 0)

    @property
    def difference_count(self) -> int:
        """The number of differing fields in all responses, including accepted ones."""
        return len(self._difference_table)

    @property
    def accepted_count(self) -> int:
        """The number of accepted differences."""
        return self._difference_table.accepted_count

    def differences(self, most: int | None = None) -> Iterator[Row]:
        """Yield the differences in the order in which they were found, at most `most`."""
        return self._difference_table.rows(most)

    def equivalents(self, most: int | None = None) -> Iterator[Row]:
        """Yield the equivalent responses with their reasons, at most `most`."""
        return self._equivalents.rows(most)

    def summary(self) -> Row:
        """Return the summary row: the numbers of the replay."""
        seconds = self.elapsed_ns / 1e9
        first = next((row for row in self.field_rows() if not row["accepted"]), None)
        return {
            "target": self.target,
            "passed": self.passed,
            "ended": self.ended,
            "steps": len(self.plan),
            "passes": self._passes,
            "captured": self.captured,
            "sent": self.replayed,
            "never_reached": self.never_reached,
            **{verdict.value: count for verdict, count in self.verdicts.items()},
            "differences": self.difference_count,
            "accepted_differences": self.accepted_count,
            "missing_prerequisites": self.missing_prerequisites,
            "not_balanced": len(self.unbalanced_logs),
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
        return [known.row() for known in self.plan.connections.values()]

    def left_out_rows(self) -> list[Row]:
        """
        Return why requests were not sent, the most frequent reason first.

        They were left out by the plan, or by the replay: a request could not be rewritten, or the
        target does not offer its API. The counts add up to that of the verdict `left_out`.
        """
        return [
            {"by": by, **row} for by, reasons in self.left_out.items() for row in reasons.rows()
        ]

    def not_judged_rows(self) -> list[Row]:
        """Return why responses to sent requests were not waited for."""
        return self.not_judged.rows()

    def reason_rows(self) -> list[Row]:
        """Return why responses are equivalent; one response may have several reasons."""
        return self.reasons.rows()

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

        They are in the order of the first request whose response differs there, so that causes
        precede their consequences.
        """
        return self._difference_table.field_rows()

    @property
    def fields(self) -> dict[str, ExampleCounter]:
        """The number of differences for each field pattern."""
        return self._difference_table.fields

    @property
    def refusals(self) -> Counter[str]:
        """Why steps could not be sent, or their responses not be waited for, with counts."""
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
        return self._difference_table.acceptable()

    def failure_rows(self) -> list[Row]:
        """Return why captured responses have no live counterpart."""
        return self.failures.rows()

    def left_behind_rows(self) -> list[Row]:
        """Return what could not be cleaned up on the target."""
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


def _judged_row(request: Row, step: Step, verdict: Verdict) -> Row:
    missing = sorted(step.missing_prerequisites)
    return {**request, "verdict": verdict.value, "missing_prerequisites": missing}


def _request_row(outcome: Outcome) -> Row:
    """Return the columns that identify the request of an outcome."""
    captured = outcome.step.captured
    return {
        "step": outcome.step.number,
        "pass": outcome.pass_number,
        "connection": captured.connection,
        "client": captured.client,
        "broker": captured.broker,
        "client_id": captured.client_id,
        "api": captured.api,
        "api_version": captured.api_version,
        "version_sent": outcome.version,
        "correlation_id": captured.correlation_id,
        "request_time_ns": captured.request_time_ns,
    }
