"""What a replay has shown, collected step by step in bounded memory."""

from __future__ import annotations

import json
import tempfile
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from dissector.protocol.embedded.sasl import MASK
from dissector.protocol.error_codes import error_name
from dissector.view.values import jsonable
from replay.compare import FAILING
from replay.noise import Noise, general
from replay.outcome import Alike, Change, Difference, Outcome, Verdict
from replay.plan import Plan
from replay.roles import Role
from replay.step import Step
from replay.tallies import OfApi, Row, Seen, Times

_IN_MEMORY_BYTES = 16 << 20
"""Differences beyond this are in a temporary file."""

_MOST_KINDS = 1000
"""Of failures, that are told apart."""

OTHER = "other failures"

_VERDICTS = tuple(Verdict)


class Report:
    """
    What a replay has shown so far.

    Args:
        plan: What was to be replayed.
        target: Whom it was replayed to, as people call it.
        noise: What was not counted as a difference.
        show_secrets: Whether secrets may be shown.

    Attributes:
        ended: Why the replay ended before its time, or sent nothing; else empty.
        elapsed_ns: How long it took.
        apis: By API, in the order in which they came up.
        lags: How much later than planned requests were sent.
        places: By pattern of their path: differences.
        failures: Why steps had no answer, and how often.
        refusals: Why steps could not be sent or their answers not be waited for, and how often.
        changes: By role and rule: what was substituted.
        versions: API, captured version, version sent -> how often.
        split: How many requests were sent to more than one broker.
        remains: What could not be tidied up on the target, and why.
        sent: How many requests were sent; one that is split counts as many as it became.
        lacking: How many of those that fail go by what was left out.
    """

    def __init__(
        self, plan: Plan, target: str, noise: Noise | None = None, show_secrets: bool = False
    ) -> None:
        self.plan = plan
        self.target = target
        self.noise = noise or Noise()
        self.ended = ""
        self.elapsed_ns = 0
        self.apis: dict[str, OfApi] = {}
        self.lags = Times()
        self.places: dict[str, Seen] = {}
        self.failures: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()
        self.changes: dict[tuple[str, str], Seen] = {}
        self.versions: Counter[tuple[str, int, int]] = Counter()
        self.remains: list[str] = []
        self.split = 0
        self.sent = 0
        self.difference_count = 0
        self.lacking = 0
        self._verdicts: Counter[Verdict] = Counter()
        self._verdict_of = bytearray(len(plan))
        self._show_secrets = show_secrets
        self._spool = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES, "w+")  # noqa: SIM115
        weakref.finalize(self, self._spool.close)

    def add(self, outcome: Outcome, verdict: Verdict, differences: Iterable[Difference]) -> None:
        """Take over what became of a step."""
        captured = outcome.step.captured
        self._verdicts[verdict] += 1
        self._note(outcome.step.number, verdict)
        self.sent += len(outcome.parts)
        self.split += len(outcome.parts) > 1
        known = self.apis.setdefault(captured.api, OfApi())
        known.verdicts[verdict] += 1
        self.lacking += verdict in FAILING and bool(outcome.step.lacks)
        if verdict is Verdict.LEFT_OUT:
            if not outcome.step.left_out:
                _count(self.refusals, outcome.failure)
            return
        self._add_sent(outcome, known)
        if verdict is Verdict.MISSING:
            _count(self.failures, outcome.failure)
            differences = [Difference("", "an answer", f"none: {outcome.failure}")]
        for each in differences:
            self._differs(outcome, verdict, each)

    def add_alike(self, alike: Alike) -> None:
        """Take over steps that were answered as captured; one like them was added before."""
        count = len(alike.numbers)
        self._verdicts[Verdict.SAME] += count
        np.frombuffer(self._verdict_of, np.uint8)[alike.numbers] = _VERDICTS.index(Verdict.SAME)
        self.sent += count
        known = self.apis[alike.api]
        known.verdicts[Verdict.SAME] += count
        self.lags.add_all(alike.lags_ns)
        known.replayed.add_all(alike.latencies_ns)
        known.captured.add_all(self.plan.latencies_ns(alike.numbers))
        for change, times in alike.changes.items():
            self.changes[change].count += times

    def _note(self, number: int, verdict: Verdict) -> None:
        """Note the verdict on a step of the pass: the end of the pass may change it."""
        if number >= len(self._verdict_of):
            self._verdict_of.extend(bytes(number + 1 - len(self._verdict_of)))
        self._verdict_of[number] = _VERDICTS.index(verdict)

    def revise(self, step: Step, copy: int, difference: Difference) -> None:
        """Take over a difference of a step that was added before, in the same pass."""
        before = _VERDICTS[self._verdict_of[step.number]]
        if before not in FAILING:
            for verdicts in (self._verdicts, self.apis[step.captured.api].verdicts):
                verdicts[before] -= 1
                verdicts[Verdict.DIFFERS] += 1
            self.lacking += bool(step.lacks)
            self._note(step.number, Verdict.DIFFERS)
        outcome = Outcome(step, copy, version=step.captured.api_version)
        self._differs(outcome, _VERDICTS[self._verdict_of[step.number]], difference)

    def _add_sent(self, outcome: Outcome, known: OfApi) -> None:
        captured = outcome.step.captured
        self.lags.add(outcome.lag_ns)
        if outcome.latency_ns is not None:
            known.replayed.add(outcome.latency_ns)
        if captured.response_time_ns is not None:
            known.captured.add(captured.response_time_ns - captured.request_time_ns)
        if outcome.parts and outcome.version != captured.api_version:
            self.versions[captured.api, captured.api_version, outcome.version] += 1
        for change in outcome.changes:
            seen = self.changes.setdefault((change.role, change.why), Seen())
            seen.add(partial(self._change, captured.api, change))

    def _change(self, api: str, change: Change) -> Row:
        values = {"captured": jsonable(change.captured), "sent": jsonable(change.sent)}
        if change.role == Role.TOKEN and not self._show_secrets:
            values = dict.fromkeys(values, MASK)
        return {"path": f"{api}.{change.path}", **values}

    def _differs(self, outcome: Outcome, verdict: Verdict, difference: Difference) -> None:
        captured = outcome.step.captured
        row = {
            "step": outcome.step.number,
            "copy": outcome.copy,
            "connection": captured.connection,
            "client": captured.client,
            "broker": captured.broker,
            "client_id": captured.client_id,
            "api": captured.api,
            "api_version": captured.api_version,
            "version_sent": outcome.version,
            "correlation_id": captured.correlation_id,
            "request_time_ns": captured.request_time_ns,
            "verdict": verdict.value,
            "lacks": sorted(outcome.step.lacks),
            "path": difference.path,
            "captured": _told(difference, difference.captured),
            "replayed": _told(difference, difference.replayed),
        }
        self.difference_count += 1
        self.places.setdefault(general(captured.api, difference.path), Seen()).add(lambda: row)
        self._spool.write(json.dumps(jsonable(row)) + "\n")

    @property
    def verdicts(self) -> Mapping[Verdict, int]:
        """How many steps had each verdict, those that were planned to be left out among them."""
        return {verdict: self._verdicts[verdict] for verdict in Verdict}

    @property
    def failing(self) -> int:
        """How many steps say that the target does not do what was captured."""
        return sum(self._verdicts[verdict] for verdict in FAILING)

    @property
    def passed(self) -> bool:
        """Whether the target did all that was captured."""
        return not self.failing and not self.ended

    def differences(self, most: int | None = None) -> Iterator[Row]:
        """Yield differences in the order in which they came up; the first so many."""
        self._spool.seek(0)
        try:
            yield from map(json.loads, islice(self._spool, most))
        finally:
            self._spool.seek(0, 2)

    def summary(self) -> Row:
        """Return the replay in numbers."""
        seconds = self.elapsed_ns / 1e9
        return {
            "target": self.target,
            "passed": self.passed,
            "ended": self.ended,
            "steps": len(self.plan),
            **{verdict.value: count for verdict, count in self.verdicts.items()},
            "differences": self.difference_count,
            "lacking": self.lacking,
            "requests_sent": self.sent,
            "split": self.split,
            "elapsed_s": round(seconds, 3),
            "requests_per_s": round(self.sent / seconds, 1) if seconds else None,
            **self.lags.row("lag"),
        }

    def api_rows(self) -> list[Row]:
        """Return a row for each API: verdicts, latency as captured and as replayed."""
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
        """Return a row for each captured connection: how complete it is."""
        return [
            {
                "connection": known.connection,
                "client": known.client,
                "broker": known.broker,
                "score": round(known.score, 3),
                "requests": known.requests,
                "unanswered": known.unanswered,
                "orphans": known.orphans,
                "midway": known.is_midway,
                "gap_bytes": known.gap_bytes,
                "cut_bytes": known.cut_bytes,
                "skipped_bytes": known.skipped_bytes,
            }
            for known in self.plan.connections.values()
        ]

    def left_out_rows(self) -> list[Row]:
        """
        Return why requests do not count: by plan, and because of what the replay came to.

        They could not be rewritten, or it ended before they were answered.
        """
        rows = [("plan", self.plan.left_out), ("replay", self.refusals)]
        return [
            {"by": by, "reason": reason, "count": count}
            for by, reasons in rows
            for reason, count in reasons.most_common()
        ]

    def change_rows(self) -> list[Row]:
        """Return what was substituted: by role and rule, with an example."""
        return [
            {"role": role, "rule": why, "count": seen.count, **seen.first}
            for (role, why), seen in sorted(self.changes.items())
        ]

    def version_rows(self) -> list[Row]:
        """Return which requests were sent in another version than the captured one."""
        return [
            {"api": api, "captured_version": old, "version_sent": new, "count": count}
            for (api, old, new), count in sorted(self.versions.items())
        ]

    def place_rows(self) -> list[Row]:
        """Return the differences by field, the most frequent first, with examples."""
        found = sorted(self.places.items(), key=lambda item: -item[1].count)
        return [
            {"place": place, "count": seen.count, "examples": seen.examples}
            for place, seen in found
        ]

    def __str__(self) -> str:
        from replay.text import text_lines

        return "\n".join(text_lines(self))

    def failure_rows(self) -> list[Row]:
        """Return why captured answers had no counterpart."""
        return [{"failure": why, "count": count} for why, count in self.failures.most_common()]

    def remains_rows(self) -> list[Row]:
        """Return what could not be tidied up on the target."""
        return [{"remains": what} for what in self.remains]

    def ignored_rows(self) -> list[Row]:
        """Return what was not counted, by pattern."""
        return [
            {"pattern": pattern, "count": self.noise.ignored[pattern]}
            for pattern in self.noise.patterns
        ]


def _count(reasons: Counter[str], reason: str) -> None:
    known = reason in reasons or len(reasons) < _MOST_KINDS
    reasons[reason if known else OTHER] += 1


def _told(difference: Difference, value: Any) -> Any:
    """Return a value as it is told: error codes by their names."""
    if difference.is_error and isinstance(value, int):
        return error_name(value)
    return jsonable(value)
