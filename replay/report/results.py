"""What a replay has shown, collected step by step in bounded memory."""

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
from replay.report.counters import OfApi, Reasons, Seen, Times
from replay.report.difference_table import Differing
from replay.report.equivalent_answers import Equivalents
from replay.report.provenance import About

_VERDICTS = tuple(Verdict)

BY_PLAN, BY_REPLAY = "plan", "replay"
"""Who left a request out."""


class Results:
    """
    What a replay has shown so far.

    Args:
        plan: What was to be replayed.
        setting: At whom, and how.

    Attributes:
        about: Captures, options and target.
        target: Whom it was replayed to, as people call it.
        noise: What was not counted as a difference.
        criteria: What makes it fail.
        ended: Why the replay ended before its time, or sent nothing; else empty.
        elapsed_ns: How long it took.
        apis: By API, in the order in which they came up.
        lags: How much later than planned requests were sent.
        failures: Why steps had no answer, and how often.
        left_out: By whom and why steps were left out.
        not_judged: Why answers were not waited for.
        reasons: Why answers are equivalent.
        changes: By role and rule: what was substituted.
        versions: API, captured version, version sent -> how often.
        split: How many requests were sent to more than one broker.
        remains: What could not be tidied up on the target, and why.
        left_open: The logs that could not be balanced, and why; in all passes.
        sent: How many requests were sent; one that is split counts as many as it became.
        lacking: How many of those that fail go by what was left out.
    """

    def __init__(self, plan: Plan, setting: TargetSettings) -> None:
        self.plan = plan
        self.about = About.of(plan, setting)
        self.target = setting.to
        self.noise = setting.noise
        self.criteria = setting.criteria
        self.ended = ""
        self.elapsed_ns = 0
        self.apis: dict[str, OfApi] = {}
        self.lags = Times()
        self.failures = Reasons()
        self.left_out = {BY_PLAN: Reasons(), BY_REPLAY: Reasons()}
        self.not_judged = Reasons()
        self._equivalents = Equivalents()
        self.reasons = self._equivalents.reasons
        self.changes: dict[tuple[str, str], Seen] = {}
        self.versions: Counter[tuple[str, int, int]] = Counter()
        self.remains: list[str] = []
        self.left_open: list[UnbalancedLog] = []
        self.split = 0
        self.sent = 0
        self.lacking = 0
        self._passes = setting.play_options.loop
        self._verdicts: Counter[Verdict] = Counter()
        self._verdict_of = bytearray(len(plan))
        self._shows_secrets = setting.show_secrets
        self._differing = Differing(setting.criteria.accepted, setting.show_payloads)

    def add(self, outcome: Outcome, verdict: Verdict, differences: Iterable[Difference]) -> None:
        """Take over what became of a step."""
        step = outcome.step
        api = step.captured.api
        known = self.apis.setdefault(api, OfApi())
        if verdict is Verdict.MISSING:
            self.failures.add(outcome.failure, api)
            differences = [Difference("", "an answer", f"none: {outcome.failure}")]
        found = self._differing.find(api, differences, verdict is Verdict.INCOMPLETE)
        if verdict in FAILING_VERDICTS and found and all(each.accepted for each in found):
            verdict = Verdict.ACCEPTED
        self._verdicts[verdict] += 1
        known.verdicts[verdict] += 1
        self._note(step.number, verdict)
        if verdict is Verdict.LEFT_OUT:
            self.left_out[BY_PLAN if step.left_out else BY_REPLAY].add(outcome.failure, api)
            return
        self._add_sent(outcome, known)
        self.lacking += verdict in FAILING_VERDICTS and bool(step.missing_prerequisites)
        if verdict is Verdict.NOT_JUDGED:
            self.not_judged.add(outcome.failure, api)
        request = _request(outcome)
        if verdict is Verdict.EQUIVALENT:
            self._equivalents.add(request, outcome.reasons)
        about = {**request, "verdict": verdict.value, "lacks": sorted(step.missing_prerequisites)}
        for each in found:
            self._differing.add(about, each)

    def add_alike(self, alike: BatchedOutcome) -> None:
        """Take over steps that were answered as captured; one like them was added before."""
        count = len(alike.step_numbers)
        self._verdicts[Verdict.SAME] += count
        np.frombuffer(self._verdict_of, np.uint8)[alike.step_numbers] = _VERDICTS.index(
            Verdict.SAME
        )
        self.sent += count
        known = self.apis[alike.api]
        known.verdicts[Verdict.SAME] += count
        self.lags.add_all(alike.lags_ns)
        known.replayed.add_all(alike.latencies_ns)
        known.captured.add_all(self.plan.latencies_ns(alike.step_numbers))
        for change, times in alike.changes.items():
            self.changes[change].count += times

    def revise(self, step: Step, copy: int, difference: Difference) -> None:
        """Take over a difference of a step that was added before, in the same pass."""
        api = step.captured.api
        (found,) = self._differing.find(api, [difference])
        request = _request(Outcome(step, copy, version=step.captured.api_version))
        verdict = before = _VERDICTS[self._verdict_of[step.number]]
        if before is Verdict.EQUIVALENT:
            self._equivalents.take_back(request)
        if before not in FAILING_VERDICTS:
            verdict = Verdict.ACCEPTED if found.accepted else Verdict.DIFFERS
            for verdicts in (self._verdicts, self.apis[api].verdicts):
                verdicts[before] -= 1
                verdicts[verdict] += 1
            self.lacking += verdict in FAILING_VERDICTS and bool(step.missing_prerequisites)
            self._note(step.number, verdict)
        about = {**request, "verdict": verdict.value, "lacks": sorted(step.missing_prerequisites)}
        self._differing.add(about, found)

    def _note(self, number: int, verdict: Verdict) -> None:
        """Note the verdict on a step of the pass: the end of the pass may change it."""
        if number >= len(self._verdict_of):
            self._verdict_of.extend(bytes(number + 1 - len(self._verdict_of)))
        self._verdict_of[number] = _VERDICTS.index(verdict)

    def _add_sent(self, outcome: Outcome, known: OfApi) -> None:
        captured = outcome.step.captured
        self.sent += len(outcome.parts)
        self.split += len(outcome.parts) > 1
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
        if change.role == Role.TOKEN and not self._shows_secrets:
            values = dict.fromkeys(values, MASK)
        return {"path": f"{api}.{change.path}", **values}

    @property
    def verdicts(self) -> Mapping[Verdict, int]:
        """How many steps had each verdict, those that were planned to be left out among them."""
        return {verdict: self._verdicts[verdict] for verdict in Verdict}

    @property
    def failing(self) -> int:
        """How many answers are not as captured, and not accepted."""
        return sum(self._verdicts[verdict] for verdict in FAILING_VERDICTS)

    @property
    def passed(self) -> bool:
        """Whether nothing happened that is to fail, and the replay came to its end."""
        fails = any(self._verdicts[verdict] for verdict in self.criteria.verdicts)
        fails = fails or (self.criteria.wants_balance and bool(self.left_open))
        return not fails and not self.ended and not self.limit_rows()

    @property
    def is_begun(self) -> bool:
        """Whether anything became of a request, if only that it was left out."""
        return bool(sum(self._verdicts.values()))

    @property
    def captured(self) -> int:
        """How many requests were to be sent or left out, in all passes."""
        return len(self.plan) * self._passes

    @property
    def answers(self) -> int:
        """How many captured requests were sent."""
        return sum(self._verdicts.values()) - self._verdicts[Verdict.LEFT_OUT]

    @property
    def never_reached(self) -> int:
        """How many captured requests the replay did not come to."""
        return max(self.captured - sum(self._verdicts.values()), 0)

    @property
    def difference_count(self) -> int:
        """How many fields differ, in all answers, those that are accepted too."""
        return len(self._differing)

    @property
    def accepted_count(self) -> int:
        """How many of these are accepted."""
        return self._differing.accepted_count

    def differences(self, most: int | None = None) -> Iterator[Row]:
        """Yield differences in the order in which they came up; the first so many."""
        return self._differing.rows(most)

    def equivalents(self, most: int | None = None) -> Iterator[Row]:
        """Yield equivalent answers with the reasons; the first so many."""
        return self._equivalents.rows(most)

    def summary(self) -> Row:
        """Return the replay in numbers."""
        seconds = self.elapsed_ns / 1e9
        first = next((row for row in self.place_rows() if not row["accepted"]), None)
        return {
            "target": self.target,
            "passed": self.passed,
            "ended": self.ended,
            "steps": len(self.plan),
            "passes": self._passes,
            "captured": self.captured,
            "sent": self.answers,
            "never_reached": self.never_reached,
            **{verdict.value: count for verdict, count in self.verdicts.items()},
            "differences": self.difference_count,
            "accepted_differences": self.accepted_count,
            "lacking": self.lacking,
            "not_balanced": len(self.left_open),
            "limits_exceeded": len(self.limit_rows()),
            "first_difference": first and _first_text(first),
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
        return [known.row() for known in self.plan.connections.values()]

    def left_out_rows(self) -> list[Row]:
        """
        Return why requests were not sent, the most frequent reason first.

        By plan, and because of what the replay came to: they could not be rewritten, or the target
        does not offer their API. As many as the verdict `left_out` has.
        """
        return [
            {"by": by, **row} for by, reasons in self.left_out.items() for row in reasons.rows()
        ]

    def not_judged_rows(self) -> list[Row]:
        """Return why answers to what was sent were not waited for."""
        return self.not_judged.rows()

    def reason_rows(self) -> list[Row]:
        """Return why answers are equivalent; one answer may have several reasons."""
        return self.reasons.rows()

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
        """
        Return what differs, with examples: by field, error codes also by both errors.

        In the order of the first request whose answer differs there: causes stand before what
        follows from them.
        """
        return self._differing.place_rows()

    @property
    def places(self) -> dict[str, Seen]:
        """How often each field differs, by its pattern."""
        return self._differing.places

    @property
    def refusals(self) -> Counter[str]:
        """Why steps could not be sent or their answers not be waited for, and how often."""
        return Counter(dict(self.left_out[BY_REPLAY])) + Counter(dict(self.not_judged))

    def stale_rows(self) -> list[Row]:
        """Return what `--accept` names and did not differ; nothing where not all was reached."""
        whole = not self.ended and not self.never_reached
        return [{"stale": line} for line in self.criteria.accepted.stale] if whole else []

    def limit_rows(self) -> list[Row]:
        """Return which limits of latency were exceeded, by which APIs."""
        found = (
            limit.violation(name, known.captured, known.replayed)
            for limit in self.criteria.limits
            for name, known in sorted(self.apis.items())
        )
        return [row for row in found if row is not None]

    def acceptable(self) -> list[DifferenceKey]:
        """Return the fields that differ and that `--upgrade` does not accept."""
        return self._differing.acceptable()

    def failure_rows(self) -> list[Row]:
        """Return why captured answers had no counterpart."""
        return self.failures.rows()

    def remains_rows(self) -> list[Row]:
        """Return what could not be tidied up on the target."""
        return [{"remains": what} for what in self.remains]

    def left_open_rows(self) -> list[Row]:
        """Return why logs could not be balanced, and which."""
        logs: dict[str, list[str]] = {}
        for each in self.left_open:
            logs.setdefault(each.why, []).append(f"{each.topic}-{each.partition}")
        return [
            {"count": len(names), "logs": sorted(set(names)), "reason": why}
            for why, names in logs.items()
        ]

    def ignored_rows(self) -> list[Row]:
        """Return what was not counted, by pattern."""
        return [
            {"pattern": pattern, "count": self.noise.ignored[pattern]}
            for pattern in self.noise.patterns
        ]


def _first_text(place: Row) -> str:
    errors = f": {place['errors']}" if place["errors"] else ""
    return f"step {place['first_step']}: {place['place']}{errors}"


def _request(outcome: Outcome) -> Row:
    """Return which request an outcome is about."""
    captured = outcome.step.captured
    return {
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
    }
