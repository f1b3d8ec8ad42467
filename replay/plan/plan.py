"""The replay plan: the replayed exchanges, their order, their dependencies."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Self

from dissector.engine.reading.capture import Options
from dissector.filter import Filter, parse
from dissector.protocol.frame_limits import MAX_FRAME_BYTES
from dissector.query.capture_sources import Sources, named_inputs
from dissector.query.contents.hooked_records import use_hook_columns
from dissector.query.filtered_capture import Capture
from replay.model.plan_source import Source
from replay.order.exclusion_policy import allowed_apis
from replay.plan.builder import PlanBuilder
from replay.plan.capture_part import CapturePart
from replay.plan.planned_steps import PlannedSteps
from replay.plan.schema_mapping import SchemaMappedCapture, SchemaMapping
from replay.plan.script_rewrites import ScriptRewrites

_WINDOW_BYTES = 2 << 20
"""Amount of capture data in memory at a time: more makes planning no faster."""


class Plan(PlannedSteps):
    """The steps of a replay, made by `Plan.of`: a sequence of `Step`, each read on access."""

    def __repr__(self) -> str:
        names = ", ".join(name for name, _ in self.source.files)
        return (
            f"<Plan of {names}: {len(self):,} requests on {len(self.connections):,} connections, "
            f"{self.left_out.total():,} left out>"
        )

    def _repr_html_(self) -> str:
        from dissector.view.text.notebook import facts_html

        left_out = [f"{count:,}: {reason}" for reason, count in self.left_out.most_common()]
        facts = {
            "captures": [name for name, _ in self.source.files],
            "filter": self.source.filter,
            "requests": len(self),
            "left out": left_out,
            "connections": len(self.connections),
            "captured brokers": list(self.brokers),
            "topics and partitions": [f"{name}: {count:,}" for name, count in self.topics.items()],
            "clients": sorted(set(self.clients.values())),
            "problems": self.problems,
        }
        return facts_html("Plan of a replay", facts)

    @classmethod
    def of(
        cls,
        *captures: Sources | Capture,
        filter: str | Filter | None = None,
        allow: Collection[str] = (),
        ports: Iterable[int] = (),
        max_frame_bytes: int = MAX_FRAME_BYTES,
        stdin: BinaryIO | None = None,
        keylogs: Iterable[str | Path] = (),
        decode_as: Iterable[str] = (),
        part: str = "",
        schema_mapping: SchemaMapping | None = None,
        scripts: Iterable[str | Path] = (),
    ) -> Self:
        """
        Read captures, spool their exchanges, and plan the replay.

        Args:
            captures: Parts of one capture in any order, as `open_capture` takes them, or one
                capture of `open_capture`, with its filter, ports and key logs.
            filter: A display filter: only the exchanges that match it.
            allow: Names of APIs that are otherwise left out: deletions, reconfigurations, and
                telemetry.
            ports: Treat connections on these ports as Kafka, and no others.
            max_frame_bytes: Larger messages are skipped.
            stdin: What `-` reads instead of the process's standard input.
            keylogs: Names of TLS key logs.
            decode_as: Tunnels on other UDP ports; as in `Options`.
            part: `I/N`: only the connections of part I of N, for several processes that replay
                one capture together.
            schema_mapping: Replace the ids of schemas in records by those of another registry.
            scripts: Files of Python with hooks that rewrite requests, besides those of a capture.

        Raises:
            CaptureError: A file is not a capture.
            FilterError: The filter is invalid.
            UsageError: A name in `allow` is not an API that can be allowed, an input is not a
                capture, the part does not exist, a registry lacks schemas, or a script fails.
        """
        chosen_part = CapturePart.parse(part) if part else None
        given = captures[0] if len(captures) == 1 else None
        if isinstance(given, Capture):
            names, options = given.paths, replace(given.options, window_bytes=_WINDOW_BYTES)
            filter = filter or given.filter_text
        else:
            names, inputs = named_inputs(captures)  # type: ignore[arg-type]
            options = Options(
                frozenset(ports),
                max_frame_bytes,
                window_bytes=_WINDOW_BYTES,
                stdin=stdin,
                keylogs=tuple(map(str, keylogs)),
                decode_as=tuple(decode_as),
                inputs=inputs,
            )
        capture, mapped = Capture(names, options), None
        if schema_mapping is not None:
            capture = mapped = SchemaMappedCapture(names, options, schema_mapping)
        chosen = parse(filter, hooks=True) if isinstance(filter, str) and filter else filter or None
        if chosen is not None:
            use_hook_columns(capture, chosen.paths)
        options.packet_facts = frozenset() if chosen is None else chosen.packet_facts
        plan, may_send = cls(), allowed_apis(allow)
        filter_text = chosen.text if chosen else ""
        plan.source = Source.of(names, filter_text, may_send, options.ports, part)
        of_capture = options.values.scripts if options.values else ()
        rewrites = ScriptRewrites((*of_capture, *map(str, scripts)), plan.problems.append)
        PlanBuilder(plan, capture, chosen, may_send, chosen_part, rewrites).build()
        if mapped is not None:
            plan.problems += mapped.problems_of_ids()
        return plan
