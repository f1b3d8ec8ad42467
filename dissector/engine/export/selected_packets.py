"""Reads only the chosen packets of captures: for a second dissection, and to write them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import BinaryIO

import numpy as np

from dissector.capture.columns import Packets, Segments
from dissector.capture.formats.capture_reader import read_packets
from dissector.capture.formats.conversions import Conversions
from dissector.capture.formats.packet_copier import PacketCopier
from dissector.capture.packets.layers import Layers
from dissector.engine.exchanges.packet_facts import PacketFacts
from dissector.engine.export.flow_filter import Bools, FlowFilter
from dissector.engine.reading.reader import Options
from dissector.engine.reading.segment_source import FileProblems, FileSource

_BUFFERS = ("data", "is_live")


class SelectedPackets(FileSource):
    """
    The segments that pass, as if the capture had no others.

    Attributes:
        has_fragments: Whether a selected segment came in IP fragments.
    """

    def __init__(
        self,
        paths: Sequence[str],
        flows: FlowFilter,
        options: Options,
    ) -> None:
        facts = PacketFacts(options.packet_facts, options.comments)
        super().__init__(paths, stop=options.stop, decode_as=options.decode_as, facts=facts)
        self._options = options
        self._flows = flows
        self.has_fragments = False

    def windows(self) -> Iterator[tuple[Segments, FileProblems]]:
        """Read the files."""
        clock = Layers()
        for window in _windows(self._paths, self._options):
            self._count(window)
            segments = self._layers.segments(window)
            passing = self._flows.passing(segments)
            self.has_fragments |= bool((segments.start[passing] >= len(window.data)).any())
            yield clock.with_clock(_rows(segments, passing)), []
            del window, segments


def write_packets(
    paths: Sequence[str],
    flows: FlowFilter | None,
    file: BinaryIO,
    options: Options,
    *,
    fragments: bool = False,
) -> tuple[int, int]:
    """
    Write the packets of passing segments; return their number, and the number of all.

    Args:
        paths: The captures.
        flows: Selects segments; None: all packets are written.
        file: Receives them as pcapng.
        options: How the captures are read.
        fragments: Whether to write all packets without a whole segment, too.
    """
    added = options.comments, options.section_comment, options.secrets
    copier = PacketCopier(paths, file, options.inputs, *added)
    layers, total = Layers(decode_as=options.decode_as), 0
    for window in _windows(paths, options, every_block=True):
        if flows is None:
            keep = np.ones(len(window), np.bool_)
        else:
            segments = layers.segments(window)
            keep = _packets_of(segments.packet[flows.passing(segments)], window)
            if fragments:
                keep |= ~_packets_of(segments.packet, window)
            del segments
        copier.write(window, keep)
        total += len(window)
        del window
    copier.finish()
    return copier.copied, total


def _windows(
    paths: Sequence[str], options: Options, *, every_block: bool = False
) -> Iterator[Packets]:
    return read_packets(
        paths,
        stop=options.stop,
        every_block=every_block,
        inputs=options.inputs,
        conversions=Conversions(options.timezone),
    )


def _packets_of(numbers: np.ndarray[tuple[int], np.dtype[np.int64]], window: Packets) -> Bools:
    """Return the mask of packets in a window with these numbers."""
    has_number = np.zeros(len(window), np.bool_)
    has_number[numbers - window.first] = True
    return has_number


def _rows(segments: Segments, chosen: Bools) -> Segments:
    names = [each.name for each in fields(segments) if each.name not in _BUFFERS]
    return replace(segments, **{name: getattr(segments, name)[chosen] for name in names})
