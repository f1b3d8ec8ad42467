"""The replay plan: which exchanges are replayed, in which order, with which dependencies."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import BinaryIO, Self

from dissector.engine.correlation.framer import MAX_FRAME_BYTES
from dissector.engine.reading.capture import Capture, Options
from dissector.filter import Filter, parse
from replay.model.plan_source import Source
from replay.plan.builder import PlanBuilder
from replay.plan.exclusion_policy import allowed_apis
from replay.plan.planned_steps import PlannedSteps

_WINDOW_BYTES = 2 << 20
"""Amount of capture data in memory at a time: more makes planning no faster."""


class Plan(PlannedSteps):
    """The steps of a replay, made by `Plan.of`: a sequence of `Step`, each read on access."""

    @classmethod
    def of(
        cls,
        *captures: str | Path,
        filter: str | Filter | None = None,
        allow: Collection[str] = (),
        ports: Iterable[int] = (),
        max_frame_bytes: int = MAX_FRAME_BYTES,
        stdin: BinaryIO | None = None,
        keylogs: Iterable[str | Path] = (),
    ) -> Self:
        """
        Read captures, spool their exchanges, and plan the replay.

        Args:
            captures: Files in time order that form one capture; `-` is standard input.
            filter: A display filter: only the exchanges that match it.
            allow: Names of APIs that are otherwise left out: those that destroy or reconfigure,
                and telemetry.
            ports: Treat connections on these ports as Kafka, and no others.
            max_frame_bytes: Larger messages are skipped.
            stdin: What `-` reads instead of the process's standard input.
            keylogs: Names of TLS key logs.

        Raises:
            CaptureError: A file is not a capture.
            FilterError: The filter is invalid.
            UsageError: A name in `allow` is no API that can be allowed.
        """
        chosen = parse(filter) if isinstance(filter, str) and filter else filter or None
        options = Options(
            frozenset(ports),
            max_frame_bytes,
            window_bytes=_WINDOW_BYTES,
            stdin=stdin,
            keylogs=tuple(map(str, keylogs)),
            packet_lengths=chosen is not None and chosen.uses_packet_lengths,
        )
        capture = Capture(captures, options)
        plan, may_send = cls(), allowed_apis(allow)
        plan.source = Source.of(captures, chosen.text if chosen else "", may_send, options.ports)
        PlanBuilder(plan, capture, chosen, may_send).build()
        return plan
