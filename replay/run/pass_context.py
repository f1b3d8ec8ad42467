"""What the players of one pass over a plan share."""

from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from replay.client.cluster import Cluster
from replay.mapping.id_map import IdMap
from replay.model.outcome import BatchedOutcome, Difference, Outcome, Verdict
from replay.model.step import Step
from replay.options.pacing import SECOND_NS
from replay.options.play_options import PlayOptions
from replay.plan.plan import Plan
from replay.sessions.group_sessions import Groups
from replay.sessions.heartbeats import Heartbeats
from replay.sessions.live_fetch_sessions import Sessions
from replay.sessions.live_share_sessions import ShareSessions
from replay.sessions.missing_members import Strangers
from replay.sessions.missing_on_target import Absent
from replay.sessions.missing_producers import MadeUp
from replay.sessions.open_transactions import Transactions
from replay.templates.batched_report import Unreported
from replay.templates.step_arrays import Arrays

AHEAD = 1024
"""Requests of a connection that may be unanswered before it waits for answers."""

AHEAD_NS = SECOND_NS // 2
"""Connections are made so long before their first request is due."""


@dataclass(slots=True)
class Progress:
    """
    How far a run is.

    Attributes:
        sent: Steps that were sent, or left out.
        done: Steps that have their outcome.
        total: Steps of all passes together.
        lag_ns: How late the step sent last was.
        waits: Steps that are asked again until the target is ready, and for what.
        notices: What people should know at once, in the order in which it came up.
    """

    sent: int = 0
    done: int = 0
    total: int = 0
    lag_ns: int = 0
    waits: dict[int, str] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)


class Judge(Protocol):
    """Takes what becomes of steps, as it is known."""

    def outcome(self, outcome: Outcome, world: IdMap) -> Verdict:
        """Compare what a step was answered with what was captured; the world learned before."""

    def alike(self, alike: BatchedOutcome) -> None:
        """Take steps that were found to be answered as captured."""

    def afterwards(self, number: int, copy: int, difference: Difference) -> None:
        """Take a difference of a step that only the end of the pass shows."""


class Stage:
    """
    One pass: what is done, and what everybody knows.

    Attributes:
        plan: What is played.
        cluster: At whom.
        world: What the target has in the place of what was captured.
        manner: How.
        progress: How far the run is.
        judge: Takes what becomes of steps.
        copy: Number of the pass.
        sessions: Fetch sessions.
        shares: Share sessions.
        groups: Who leads which group.
        heartbeats: Keeps members alive.
        absent: What the target lacks for good.
        strangers: Members of groups whose join the capture does not show.
        transactions: Those that may be open.
        arrays: The steps as kernels take them.
        unreported: What was answered as captured, and is not reported yet.
        made_up: Does for producers what the capture lacks.
    """

    def __init__(
        self,
        plan: Plan,
        cluster: Cluster,
        world: IdMap,
        manner: PlayOptions,
        progress: Progress,
        judge: Judge,
        copy: int = 0,
    ) -> None:
        self.plan = plan
        self.cluster = cluster
        self.world = world
        self.manner = manner
        self.copy = copy
        self.progress = progress
        self.judge = judge
        self.sessions = Sessions(cluster, world)
        self.shares = ShareSessions()
        self.groups = Groups(plan, world)
        self.heartbeats = Heartbeats(cluster, world, self.groups.told)
        cluster.notify = progress.notices.append
        self.absent = Absent(cluster, world, progress.notices.append)
        self.strangers = Strangers(plan, cluster, world, self.groups, self.heartbeats)
        self.transactions = Transactions()
        self.unreported = Unreported(judge.alike)
        self.made_up = MadeUp(cluster, world, self.transactions)
        self._loop = asyncio.get_running_loop()
        self._is_done = bytearray(len(plan))
        self._waiting: dict[int, list[Callable[[], None]]] = {}
        self._due = array("q")
        if manner.pace.is_timed:
            self._due = manner.pace.schedule(plan.times_ns(n)[0] for n in range(len(plan)))
        self.arrays = Arrays(plan, self._is_done, self._due)
        self._begin_ns = time.perf_counter_ns() + (AHEAD_NS if self._due else 0)

    def done(self, number: int) -> None:
        """Let those go on that wait for a step."""
        self._is_done[number] = 1
        for go_on in self._waiting.pop(number, ()) if self._waiting else ():
            go_on()

    def done_all(self, numbers: Iterable[int]) -> None:
        """Let those go on that wait for steps that are noted as done."""
        if self._waiting:
            for number in numbers:
                if number in self._waiting:
                    self.done(number)

    @property
    def now_ns(self) -> int:
        """The time since the pass began, in the terms of when steps are due."""
        return time.perf_counter_ns() - self._begin_ns

    def when_done(self, number: int, go_on: Callable[[], None]) -> None:
        """Call somebody when a step is done."""
        self._waiting.setdefault(number, []).append(go_on)

    def awaited(self, number: int) -> int:
        """Return the first step that must still be answered before one is sent; -1 for none."""
        plan, is_done = self.plan, self._is_done
        for at in range(plan.cause_ends[number], plan.cause_ends[number + 1]):
            if not is_done[plan.causes[at]]:
                return plan.causes[at]
        return -1

    async def answered(self, numbers: Iterable[int]) -> None:
        """Wait until all these steps are done."""
        for number in numbers:
            if not self._is_done[number]:
                waiting = self._loop.create_future()
                self.when_done(number, partial(_let_go, waiting))
                await waiting

    async def all_answered(self, first: int, end: int) -> None:
        """Wait until all steps from one on, and before another, are done."""
        # From the last one: when that is done, most are.
        while (number := self._is_done.rfind(0, first, end)) >= 0:
            await self.answered([number])

    def caught_up(self, step: Step) -> bool:
        """Tell whether all is answered that others had asked by the captured answer to a step."""
        answered_ns = step.captured.response_time_ns
        end = len(self.plan) if answered_ns is None else self.plan.first_after(answered_ns)
        at = self._is_done.find(0, step.number + 1, end)
        while at >= 0:
            if self.plan.asked_at(at)[0] != step.captured.connection:
                return False
            at = self._is_done.find(0, at + 1, end)
        return True

    async def due(self, number: int, ahead_ns: int = 0) -> None:
        """Wait until a step is due, or until so long before."""
        if self._due:
            wait_ns = self._due[number] - ahead_ns - self.now_ns
            if wait_ns > 0:
                await asyncio.sleep(wait_ns / SECOND_NS)

    def lag_ns(self, number: int) -> int:
        """Return by how many nanoseconds the time of a step is over."""
        if not self._due:
            return 0
        return max(self.now_ns - self._due[number], 0)


def _let_go(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
