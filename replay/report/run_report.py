"""The report of a run: outcomes of steps, collected during the run in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np

from cluster.conversion.change import Change
from dissector.protocol.embedded.sasl_tokens import MASK
from dissector.protocol.embedded.secrecy.credentials import mask_texts
from dissector.protocol.field_roles import Role
from dissector.protocol.headers import API_VERSIONS
from dissector.view.text.value_text import jsonable
from replay.compare.log_balance import SharedLog, UnbalancedLog
from replay.compare.step_verdict import FAILING_VERDICTS
from replay.model.outcome import BatchedOutcome, Difference, Outcome, Verdict
from replay.model.row import Row
from replay.model.step import Step
from replay.options.difference_baseline import DifferenceKey
from replay.options.target_settings import TargetSettings
from replay.plan.plan import Plan
from replay.report.counters import ApiCounters, CopyCounters, Durations, ExampleCounter
from replay.report.equivalent_responses import EquivalentResponses
from replay.report.provenance import Provenance
from replay.report.report import Report
from replay.report.results import BY_PLAN, BY_REPLAY
from replay.report.unsupported import why_unsupported

_VERDICTS = tuple(Verdict)


class RunReport(Report):
    """
    The report of a run so far.

    Args:
        plan: The plan.
        settings: Target and options.

    Attributes:
        plan: The plan.
        about: Captures, options and target.
    """

    about: Provenance

    def __init__(self, plan: Plan, settings: TargetSettings) -> None:
        about, options = Provenance.of(plan, settings), settings.play_options
        super().__init__(
            about, settings.to, settings.criteria, settings.noise, settings.show_payloads
        )
        self.plan = plan
        self.steps = len(plan)
        self.passes = options.passes
        self.captured = self.steps * self.passes
        self.copies = [
            CopyCounters(settings.names(copy).prefix, copy * options.stagger_s)
            for copy in range(options.scale)
        ]
        self._names = settings.names
        self.equivalent_responses = EquivalentResponses(options.scale)
        self._verdicts_of = [bytearray(plan.size) for _ in self.copies]
        self._shows_secrets = settings.show_secrets

    def add(self, outcome: Outcome, verdict: Verdict, differences: Iterable[Difference]) -> None:
        """Add the outcome of a step, its verdict and its differences."""
        differences = list(differences)
        step = outcome.step
        api = step.captured.api
        known = self.apis.setdefault(api, ApiCounters())
        why = outcome.failure if self._shows_secrets else mask_texts(outcome.failure)
        if verdict is Verdict.MISSING:
            self.failures.add(why, api)
            differences = [Difference("", "a response", f"none: {why}")]
        found = self.difference_table.find_keys(api, differences, verdict is Verdict.INCOMPLETE)
        if verdict in FAILING_VERDICTS and found and all(each.accepted_by for each in found):
            verdict = Verdict.ACCEPTED
        copy = self._copy(outcome.pass_number)
        for verdicts in (self.verdict_counts, known.verdicts, copy.verdicts):
            verdicts[verdict] += 1
        self._record_verdict(outcome.pass_number, step.number, verdict)
        if verdict is Verdict.LEFT_OUT:
            self.left_out[BY_PLAN if step.left_out else BY_REPLAY].add(why, api)
            if outcome.is_unsupported:
                self._add_unsupported(outcome, why)
            return
        # Clients repeat ApiVersions in another version by themselves (KIP-511).
        may_be_unable = verdict is Verdict.ERROR_CHANGED and step.captured.api_key != API_VERSIONS
        if may_be_unable and (reason := why_unsupported(differences)):
            self._add_unsupported(outcome, reason)
        self._add_sent(outcome, known, copy)
        self._count_missing_prerequisites(step, verdict)
        if verdict is Verdict.NOT_JUDGED:
            self.not_judged.add(why, api)
            if outcome.waited_ns:
                self.waits.setdefault(api, Durations()).add(outcome.waited_ns)
        if verdict is not Verdict.EQUIVALENT and not found:
            return
        request = self._request_row(outcome)
        if verdict is Verdict.EQUIVALENT:
            self.equivalent_responses.add(request, outcome.reasons)
        for each in found:
            self.difference_table.add(_judged_row(request, step, verdict), each)

    def _add_unsupported(self, outcome: Outcome, why: str) -> None:
        """Count a request that the target can't do, with its client."""
        captured, accepted = outcome.step.captured, self.criteria.accepted
        name = f"{self.plan.clients.get(captured.connection, 'unknown')} ({captured.client_id})"
        self.unsupported.add(
            captured.api,
            why,
            name if self._shows_secrets else mask_texts(name, captured.known_secrets),
            accepted=accepted.accepts(DifferenceKey.unsupported(captured.api)),
            documented=accepted.profile.source_without(captured.api),
        )

    def add_batch(self, batch: BatchedOutcome) -> None:
        """Add steps with responses equal to the captured ones; a similar step was added before."""
        count, known = len(batch.step_numbers), self.apis[batch.api]
        copy, same = self._copy(batch.pass_number), _VERDICTS.index(Verdict.SAME)
        for verdicts in (self.verdict_counts, known.verdicts, copy.verdicts):
            verdicts[Verdict.SAME] += count
        np.frombuffer(self._verdicts_in(batch.pass_number), np.uint8)[batch.step_numbers] = same
        self.sent += count
        for lags in (self.lags, copy.lags):
            lags.add_all(batch.lags_ns)
        for latencies in (known.replayed, copy.replayed):
            latencies.add_all(batch.latencies_ns)
        known.captured.add_all(self.plan.latencies_ns(batch.step_numbers))
        for change, times in batch.changes.items():
            self.changes[change].count += times

    def revise(self, step: Step, pass_number: int, difference: Difference) -> None:
        """Add a difference to a step that was added before, in the same pass."""
        api = step.captured.api
        (found,) = self.difference_table.find_keys(api, [difference])
        request = self._request_row(Outcome(step, pass_number, version=step.captured.api_version))
        verdict = before = _VERDICTS[self._verdicts_in(pass_number)[step.number]]
        if before is Verdict.EQUIVALENT:
            self.equivalent_responses.remove(request)
        if before not in FAILING_VERDICTS:
            verdict = Verdict.ACCEPTED if found.accepted_by else Verdict.DIFFERS
            copy = self._copy(pass_number)
            for verdicts in (self.verdict_counts, self.apis[api].verdicts, copy.verdicts):
                verdicts[before] -= 1
                verdicts[verdict] += 1
            self._count_missing_prerequisites(step, verdict)
            self._record_verdict(pass_number, step.number, verdict)
        self.difference_table.add(_judged_row(request, step, verdict), found)

    def _count_missing_prerequisites(self, step: Step, verdict: Verdict) -> None:
        is_failing = verdict in FAILING_VERDICTS
        self.missing_prerequisites += is_failing and bool(step.missing_prerequisites)

    def add_logs(
        self, number: int, unbalanced: Iterable[UnbalancedLog], shared: Iterable[SharedLog] = ()
    ) -> None:
        """Add the logs of a pass that it could not balance, or not without other parts."""
        logs, prefix = list(unbalanced), self._names(number).prefix
        self.unbalanced_logs += logs
        self._copy(number).not_balanced += len(logs)
        self.shared_logs += [{"names": prefix, "pass": number, **each._asdict()} for each in shared]

    def _copy(self, pass_number: int) -> CopyCounters:
        return self.copies[pass_number % len(self.copies)]

    def _verdicts_in(self, pass_number: int) -> bytearray:
        """Return the verdicts on the steps of a pass; the next pass of the copy replaces them."""
        return self._verdicts_of[pass_number % len(self.copies)]

    def _record_verdict(self, pass_number: int, number: int, verdict: Verdict) -> None:
        """Record the verdict on a step of the pass: the end of the pass may change it."""
        known = self._verdicts_in(pass_number)
        if number >= len(known):
            known.extend(bytes(number + 1 - len(known)))
        known[number] = _VERDICTS.index(verdict)

    def _add_sent(self, outcome: Outcome, counters: ApiCounters, copy: CopyCounters) -> None:
        captured = outcome.step.captured
        self.sent += len(outcome.parts)
        self.split += len(outcome.parts) > 1
        for lags in (self.lags, copy.lags):
            lags.add(outcome.lag_ns)
        if outcome.latency_ns is not None:
            for latencies in (counters.replayed, copy.replayed):
                latencies.add(outcome.latency_ns)
        if captured.response_time_ns is not None:
            counters.captured.add(captured.response_time_ns - captured.request_time_ns)
        if outcome.parts and outcome.version != captured.api_version:
            self.versions[captured.api, captured.api_version, outcome.version] += 1
        for change in outcome.changes:
            seen = self.changes.setdefault((change.role, change.why), ExampleCounter())
            seen.add(partial(self._change, captured.api, change))

    def _request_row(self, outcome: Outcome) -> Row:
        row = _request_row(outcome)
        packet = row["request_packet"]
        row["request_place"] = self.plan.places_text([packet]) if packet is not None else ""
        known = outcome.step.captured.known_secrets
        return row if self._shows_secrets else mask_texts(row, known)

    def _change(self, api: str, change: Change) -> Row:
        values = {"captured": jsonable(change.captured), "sent": jsonable(change.sent)}
        if change.role == Role.TOKEN and not self._shows_secrets:
            values = dict.fromkeys(values, MASK)
        if not self._shows_secrets:
            values = mask_texts(values)
        return {"path": f"{api}.{change.path}", **values}

    def connection_rows(self) -> list[Row]:
        """Return a row for each captured connection: its completeness."""
        return [known.row() for known in self.plan.connections.values()]


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
        "request_packet": captured.request_packet,
    }
