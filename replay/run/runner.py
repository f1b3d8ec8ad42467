"""Runs a replay: all passes over a plan, one after the other."""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections.abc import Callable, Coroutine
from typing import Any

from cluster.client.cluster import Cluster
from dissector.protocol.field_roles import Role
from replay.compare.log_balance import balance, not_balanced
from replay.final.final_check import check_end
from replay.mapping.id_map import IdMap
from replay.options.pacing import SECOND_NS
from replay.options.play_options import PlayOptions
from replay.plan.plan import Plan
from replay.run.ended_topics import record_balance
from replay.run.pass_context import CONNECT_AHEAD_NS, OutcomeSink, PassContext, Progress
from replay.run.player import Player


class ReplayRun:
    """
    One replay of a plan, by one or more copies at the same time.

    Attributes:
        ids: The id mapping of the pass that began last; None before the first.
        progress: The progress of the run.
        left_behind: Resources left on the target.
        played_ns: The time from the first due request to the last response.
    """

    def __init__(
        self,
        plan: Plan,
        cluster: Cluster,
        make_ids: Callable[[int], IdMap],
        outcomes: OutcomeSink,
        options: PlayOptions = PlayOptions(),  # noqa: B008 (frozen)
    ) -> None:
        """
        Prepare a run.

        Args:
            plan: The plan.
            cluster: The target.
            make_ids: Makes the id mapping of a pass, by its number.
            outcomes: Receives the outcomes of steps; it may stop the run.
            options: The play options.
        """
        self._plan = plan
        self._cluster = cluster
        self._make_ids = make_ids
        self._options = options
        self._is_stopped = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._outcomes = outcomes
        self.ids: IdMap | None = None
        self.progress = Progress()
        self.left_behind: list[str] = []
        self.played_ns = 0
        self._first_due_ns = 0

    def stop(self) -> None:
        """Stop the run: no more requests are sent, and `play` returns after the clean-up."""
        self._is_stopped = True
        for task in self._tasks:
            task.cancel()

    async def play(self) -> None:
        """Play all passes of all copies, each followed by its clean-up."""
        loop = asyncio.get_running_loop()
        duration_s = self._options.duration_s
        # The duration counts from the time at which the first request is due.
        ahead_s = CONNECT_AHEAD_NS / SECOND_NS if self._options.pace.is_timed else 0
        self._first_due_ns = time.perf_counter_ns() + round(ahead_s * SECOND_NS)
        end = None if duration_s is None else loop.call_later(ahead_s + duration_s, self.stop)
        try:
            ends = self._pass_ends()
            self.progress.total = sum(map(self._plan.count_before, ends))
            await self._play_copies(ends)
        finally:
            if end is not None:
                end.cancel()

    def _pass_ends(self) -> list[int]:
        """Return for each pass the number after its last step."""
        plan, limit = self._plan, self._options.limit
        if limit is None:
            return [plan.size] * self._options.passes
        whole = sum(map(plan.is_sent, plan.numbers()))
        limits = [min(limit - copy * whole, whole) for copy in range(self._options.passes)]
        return [plan.end_of(each) for each in limits if each > 0]

    async def _play_copies(self, ends: list[int]) -> None:
        """Play all copies at the same time; the first error ends all of them, and is raised."""
        copies = [
            asyncio.create_task(self._play_copy(copy, ends)) for copy in range(self._options.scale)
        ]
        try:
            await asyncio.wait(copies, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            if not all(copy.done() for copy in copies):
                self.stop()
                await asyncio.wait(copies)
        for copy in copies:
            copy.result()

    async def _play_copy(self, copy: int, ends: list[int]) -> None:
        """Play the passes of one copy, one after the other."""
        if copy and self._options.stagger_s:
            await self._until_done(asyncio.sleep(copy * self._options.stagger_s))
        for number in range(copy, len(ends), self._options.scale):
            if not self._is_stopped:
                await self._play_pass(number, ends[number])

    async def _until_done(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a part of the replay that `stop` ends."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        try:
            await asyncio.wait([task])
            if not task.cancelled():
                task.result()
        finally:
            if not task.done():
                self.stop()
                await asyncio.wait([task])
            self._tasks.discard(task)

    async def _play_pass(self, number: int, last: int) -> None:
        ids = self.ids = self._make_ids(number)
        ids.captured_topics.learn(self._plan.topic_ids)
        if self._plan.brokers:
            ids.brokers.set_captured_ids(self._plan.node_ids)
        if self._plan.cluster_id and self._cluster.cluster_id:
            ids.learn_opaque(Role.CLUSTER_ID, self._plan.cluster_id, self._cluster.cluster_id)
        ids.is_partial = self._plan.is_partial
        ids.foreign = self._plan.foreign
        ids.producers.holes = self._plan.holes
        arguments = self._options, self.progress, self._outcomes
        context = PassContext(self._plan, self._cluster, ids, *arguments, number)
        try:
            await self._until_done(self._play_connections(context, last))
        finally:
            self.played_ns = max(time.perf_counter_ns() - self._first_due_ns, 1)
            context.heartbeats.stop()
            context.batched_reporter.flush()
            patience_s = self._options.timeout_s
            self.left_behind += await context.transactions.abort(self._cluster, patience_s)
        stopped = self._is_stopped
        balanced = not_balanced(ids) if stopped else await balance(ids, self._cluster)
        if self._options.final_check and not stopped:
            final = await check_end(context.written, ids, self._cluster)
            balanced = final.added_to(balanced)
        record_balance(context, balanced)

    async def _play_connections(self, context: PassContext, last: int) -> None:
        nodes = sorted(self._cluster.brokers)
        default_nodes: dict[str, int] = {}
        async with asyncio.TaskGroup() as players:
            for broker, numbers, end in self._plan.by_connection():
                node_id = self._plan.brokers.get(broker, self._plan.connected.get(broker))
                if node_id is None:
                    default_node = default_nodes.setdefault(
                        broker, nodes[len(default_nodes) % len(nodes)]
                    )
                else:
                    default_node = context.ids.brokers.live(node_id)
                until = bisect_left(numbers, last)
                player = Player(context, numbers[:until], default_node, min(end, last))
                players.create_task(player.play())
