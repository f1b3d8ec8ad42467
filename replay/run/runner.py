"""Plays a plan at a target."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Callable

from replay.client.cluster import Cluster
from replay.compare.log_balance import UnbalancedLog, balance, not_balanced
from replay.fields.field_layout import Role
from replay.mapping.id_map import IdMap
from replay.options.pacing import SECOND_NS
from replay.options.play_options import PlayOptions
from replay.plan.plan import Plan
from replay.run.pass_context import AHEAD_NS, Judge, Progress, Stage
from replay.run.player import Player


class Run:
    """
    One replay of a plan.

    Attributes:
        world: Of the pass that is played, or was played last; None before the first.
        progress: How far it is.
        remains: What could not be tidied up on the target.
        left_open: The logs that could not be balanced.
    """

    def __init__(
        self,
        plan: Plan,
        cluster: Cluster,
        world: Callable[[int], IdMap],
        judge: Judge,
        manner: PlayOptions = PlayOptions(),  # noqa: B008 (frozen)
    ) -> None:
        """
        Prepare a run.

        Args:
            plan: What is played.
            cluster: The target.
            world: Makes the world of a pass, by its number.
            judge: Takes what becomes of steps; it may stop the run.
            manner: How it is played.
        """
        self._plan = plan
        self._cluster = cluster
        self._make_world = world
        self._manner = manner
        self._is_stopped = False
        self._players: asyncio.Task[None] | None = None
        self._judge = judge
        self.world: IdMap | None = None
        self.progress = Progress()
        self.remains: list[str] = []
        self.left_open: list[UnbalancedLog] = []

    def stop(self) -> None:
        """End the run soon: nothing more is sent, and `play` ends when all is tidied up."""
        self._is_stopped = True
        if self._players is not None:
            self._players.cancel()

    async def play(self) -> None:
        """Play all passes, and tidy up."""
        loop = asyncio.get_running_loop()
        duration_s = self._manner.duration_s
        # Nothing is sent before a first request is due.
        ahead_s = AHEAD_NS / SECOND_NS if self._manner.pace.is_timed else 0
        end = None if duration_s is None else loop.call_later(ahead_s + duration_s, self.stop)
        try:
            ends = self._ends()
            self.progress.total = sum(ends)
            for copy, last in enumerate(ends):
                if not self._is_stopped:
                    await self._pass(copy, last)
        finally:
            if end is not None:
                end.cancel()

    def _ends(self) -> list[int]:
        """Return for each pass the number behind its last step."""
        plan, limit = self._plan, self._manner.limit
        if limit is None:
            return [len(plan)] * self._manner.loop
        whole = sum(plan.is_sent(number) for number in range(len(plan)))
        limits = [min(limit - copy * whole, whole) for copy in range(self._manner.loop)]
        return [plan.end_of(each) for each in limits if each > 0]

    async def _pass(self, copy: int, last: int) -> None:
        world = self.world = self._make_world(copy)
        world.captured_topics.learn(self._plan.topic_ids)
        if self._plan.brokers:
            world.brokers.set_captured_ids(
                {*self._plan.brokers.values(), *self._plan.connected.values()}
            )
        if self._plan.cluster_id and self._cluster.cluster_id:
            world.learn_opaque(Role.CLUSTER_ID, self._plan.cluster_id, self._cluster.cluster_id)
        world.is_partial = self._plan.is_partial
        world.producers.holes = self._plan.holes
        about = self._manner, self.progress, self._judge
        stage = Stage(self._plan, self._cluster, world, *about, copy)
        self._players = asyncio.create_task(self._all_play(stage, last))
        try:
            await asyncio.wait([self._players])
            if not self._players.cancelled():
                self._players.result()
        finally:
            if not self._players.done():
                self.stop()
                await asyncio.wait([self._players])
            stage.heartbeats.stop()
            stage.unreported.flush()
            patience_s = self._manner.timeout_s
            self.remains += await stage.transactions.abort(self._cluster, patience_s)
        stopped = self._is_stopped
        balanced = not_balanced(world) if stopped else await balance(world, self._cluster)
        self.left_open += balanced.left_open
        for found in balanced.findings:
            self._judge.afterwards(found.step, copy, found.difference)

    async def _all_play(self, stage: Stage, last: int) -> None:
        nodes = sorted(self._cluster.brokers)
        homes: dict[str, int] = {}
        async with asyncio.TaskGroup() as players:
            for broker, numbers, end in self._plan.by_connection():
                known = self._plan.brokers.get(broker, self._plan.connected.get(broker))
                if known is None:
                    home = homes.setdefault(broker, nodes[len(homes) % len(nodes)])
                else:
                    home = stage.world.brokers.live(known)
                until = bisect_left(numbers, last)
                player = Player(stage, numbers[:until], home, min(end, last))
                players.create_task(player.play())
