"""Pass context: the state that the players of one pass over a plan share."""

from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from cluster.client.cluster import Cluster
from replay.compare.log_balance import SharedLog, UnbalancedLog
from replay.final.written import Written
from replay.mapping.id_map import IdMap
from replay.model.outcome import BatchedOutcome, Difference, Outcome, Verdict
from replay.model.step import Step
from replay.options.pacing import SECOND_NS
from replay.options.play_options import PlayOptions
from replay.plan.plan import Plan
from replay.run.share_acquisitions import ShareAcquisitions
from replay.sessions.group_sessions import GroupSessions
from replay.sessions.heartbeats import Heartbeats
from replay.sessions.live_fetch_sessions import FetchSessions
from replay.sessions.live_share_sessions import ShareSessions
from replay.sessions.missing_members import UncapturedMembers
from replay.sessions.missing_on_target import MissingResources
from replay.sessions.missing_producers import MissingProducers
from replay.sessions.open_transactions import OpenTransactions
from replay.templates.batched_report import BatchedReporter
from replay.templates.fetch_bodies import FetchBodies
from replay.templates.fetch_matcher import FetchMatcher
from replay.templates.step_arrays import StepArrays
from replay.templates.template import RequestTemplate

MAX_IN_FLIGHT = 1024
"""Maximum number of requests in flight on a connection."""

CONNECT_AHEAD_NS = SECOND_NS // 2
"""Connections are opened this long before their first request is due."""


@dataclass(slots=True)
class Progress:
    """
    The progress of a run.

    Attributes:
        sent: Number of steps sent or left out.
        done: Number of steps with an outcome.
        total: Number of steps in all passes.
        lag_ns: How late the latest step was sent.
        waits: Pass and step being retried until the target is ready -> API and reason.
        longest_throttle_s: The longest reported pause for a throttle time of the target.
        notices: Messages to show to the user at once, in order.
        notified: Those that are shown only once.
    """

    sent: int = 0
    done: int = 0
    total: int = 0
    lag_ns: int = 0
    waits: dict[tuple[int, int], str] = field(default_factory=dict)
    longest_throttle_s: float = 0.0
    notices: list[str] = field(default_factory=list)
    notified: set[str] = field(default_factory=set)

    def notify_once(self, notice: str) -> None:
        """Show a message to the user, unless it was shown before."""
        if notice not in self.notified:
            self.notified.add(notice)
            self.notices.append(notice)


class OutcomeSink(Protocol):
    """Receives the outcomes of steps as they become known."""

    def record(self, outcome: Outcome, ids: IdMap) -> Verdict:
        """Compare the response of a step with the captured one, after its ids were learned."""

    def record_batch(self, batch: BatchedOutcome) -> None:
        """Record steps with responses equal to the captured ones."""

    def record_late_difference(self, number: int, copy: int, difference: Difference) -> None:
        """Record a difference of a step that was found only at the end of the pass."""

    def record_logs(
        self, number: int, unbalanced: Iterable[UnbalancedLog], shared: Iterable[SharedLog]
    ) -> None:
        """Record the logs of a pass that it could not balance, or not without other parts."""


class PassContext:
    """
    The shared state of one pass, and the events between its players.

    Attributes:
        plan: The plan.
        cluster: The target.
        ids: The id mapping.
        options: The play options.
        progress: The progress of the run.
        outcomes: Receives the outcomes of steps.
        pass_number: Number of the pass.
        fetch_sessions: Live fetch sessions.
        fetch_bodies: Decoded Fetch responses, captured ones and live ones.
        fetch_matcher: Matches these.
        share_sessions: Live share sessions.
        acquisitions: Records that members of share groups hold.
        groups: Group sessions.
        templates: Shape -> the template of its requests, for all connections.
        heartbeats: Sends heartbeats for group members.
        missing_resources: Resources that the target lacks permanently.
        uncaptured_members: Group members without a captured join.
        transactions: Transactions that may be open.
        arrays: The steps as arrays for kernels.
        batched_reporter: Matched responses that are not reported yet.
        missing_producers: Sends the requests for producers that the capture lacks.
        written: What the pass wrote, for the check at its end.
    """

    def __init__(
        self,
        plan: Plan,
        cluster: Cluster,
        ids: IdMap,
        options: PlayOptions,
        progress: Progress,
        outcomes: OutcomeSink,
        pass_number: int = 0,
    ) -> None:
        self.plan = plan
        self.cluster = cluster
        self.ids = ids
        self.options = options
        self.pass_number = pass_number
        self.progress = progress
        self.outcomes = outcomes
        self.fetch_sessions = FetchSessions(cluster, ids)
        self.fetch_bodies = FetchBodies()
        self.fetch_matcher = FetchMatcher(ids)
        self.share_sessions = ShareSessions()
        self.acquisitions = ShareAcquisitions(ids)
        self.groups = GroupSessions(plan, ids)
        self.heartbeats = Heartbeats(cluster, ids, self.groups.on_rebalance)
        cluster.notify = progress.notices.append
        self.missing_resources = MissingResources(
            cluster, ids, progress.notices.append, plan.given_topics
        )
        self.uncaptured_members = UncapturedMembers(
            plan, cluster, ids, self.groups, self.heartbeats
        )
        self.transactions = OpenTransactions()
        self.batched_reporter = BatchedReporter(outcomes.record_batch, pass_number)
        self.templates: dict[int, RequestTemplate] = {}
        self.missing_producers = MissingProducers(cluster, ids, self.transactions)
        self.written = Written(cluster)
        self._loop = asyncio.get_running_loop()
        self._is_done = plan.elsewhere()
        self._waiting: dict[int, list[Callable[[], None]]] = {}
        self._due = array("q")
        if options.pace.is_timed:
            self._due = options.copy_pace.schedule(plan.times_ns(n)[0] for n in range(plan.size))
        self.arrays = StepArrays(plan, self._is_done, self._due)
        self._begin_ns = time.perf_counter_ns() + (CONNECT_AHEAD_NS if self._due else 0)

    def mark_done(self, number: int) -> None:
        """Mark a step as done, and call its waiters."""
        self._is_done[number] = 1
        for go_on in self._waiting.pop(number, ()) if self._waiting else ():
            go_on()

    def notify_done(self, numbers: Iterable[int]) -> None:
        """Call the waiters of steps that are already marked as done."""
        if self._waiting:
            for number in numbers:
                if number in self._waiting:
                    self.mark_done(number)

    @property
    def now_ns(self) -> int:
        """The time since the pass began, comparable to the due times of steps."""
        return time.perf_counter_ns() - self._begin_ns

    def when_done(self, number: int, callback: Callable[[], None]) -> None:
        """Register a callback for the completion of a step."""
        self._waiting.setdefault(number, []).append(callback)

    def pending_dependency(self, number: int) -> int:
        """Return the first dependency of a step that has no response yet; -1 for none."""
        plan, is_done = self.plan, self._is_done
        for at in range(plan.cause_ends[number], plan.cause_ends[number + 1]):
            if not is_done[plan.causes[at]]:
                return plan.causes[at]
        return -1

    async def wait_for(self, numbers: Iterable[int]) -> None:
        """Wait until all given steps are done."""
        for number in numbers:
            if not self._is_done[number]:
                waiting = self._loop.create_future()
                self.when_done(number, partial(_resolve, waiting))
                await waiting

    async def wait_for_all(self, first: int, end: int) -> None:
        """Wait until all steps from `first` on and before `end` are done."""
        # Backwards, because once the last step is done most others are too.
        while (number := self._is_done.rfind(0, first, end)) >= 0:
            await self.wait_for([number])

    def has_caught_up(self, step: Step) -> bool:
        """
        Return whether other connections have caught up with the captured response of a step.

        They have if all their requests captured before that response have their responses.
        """
        answered_ns = step.captured.response_time_ns
        end = self.plan.size if answered_ns is None else self.plan.first_after(answered_ns)
        at = self._is_done.find(0, step.number + 1, end)
        while at >= 0:
            if self.plan.request_at(at)[0] != step.captured.connection:
                return False
            at = self._is_done.find(0, at + 1, end)
        return True

    async def wait_until_due(self, number: int, ahead_ns: int = 0) -> None:
        """Wait until a step is due, or until `ahead_ns` before."""
        if self._due:
            wait_ns = self._due[number] - ahead_ns - self.now_ns
            if wait_ns > 0:
                await asyncio.sleep(wait_ns / SECOND_NS)

    def ripe_lag_ns(self, number: int) -> int:
        """Return the delay of a step that is due and has its dependencies; else less than 0."""
        if self.pending_dependency(number) >= 0:
            return -1
        return self.now_ns - self._due[number] if self._due else 0

    def lag_ns(self, number: int) -> int:
        """Return the delay of a step in nanoseconds."""
        if not self._due:
            return 0
        return max(self.now_ns - self._due[number], 0)


def _resolve(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
