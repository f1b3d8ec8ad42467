"""The folder that is written: a capture with comments and key logs, and the profile."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dissector.capture.formats.capture_reader import is_rereadable
from dissector.cli.capture_source import Source
from dissector.cli.export_comments import analysis_comments
from dissector.engine.export.selected_packets import write_packets
from dissector.engine.reading.capture import Capture
from dissector.errors import UsageError
from dissector.file_roles import READS, WRITES, NamedPath, check_outputs, written_when_complete
from dissector.query.packet_export import export_capture
from wireshark.kafka_ports import KafkaPorts, kafka_ports
from wireshark.profile_files import PROFILE, profile_files

_SUFFIXES = re.compile(r"(\.(pcap|pcapng|cap|dmp|log|gz|zst|lz4))+\Z", re.IGNORECASE)

_BLOCK_BYTES = 1 << 20
"""Size from which on a block of secrets takes no further lines."""


@dataclass(frozen=True, slots=True)
class WiresharkFolder:
    """
    A folder for Wireshark.

    Attributes:
        path: The folder.
        capture: The capture in it.
    """

    path: Path
    capture: Path

    @classmethod
    def of(cls, captures: Sequence[str], output: str | None) -> WiresharkFolder:
        """
        Return the folder for captures.

        Args:
            captures: Their names; the first one names the capture.
            output: The folder; by default `a.wireshark` of `a.pcap`, in the current folder.

        Raises:
            UsageError: A capture can be read once only, or would be overwritten.
        """
        for name in captures:
            if not is_rereadable(name, {}):
                raise UsageError(f"{name}: it is read several times; save a pipe to a file")
        name = _SUFFIXES.sub("", Path(captures[0]).name) or "capture"
        folder = Path(output or f"{name}.wireshark")
        made = cls(folder, folder / f"{name}.pcapng")
        read = [NamedPath(each, "an input", READS) for each in captures]
        check_outputs([*read, NamedPath(str(made.capture), "wireshark", WRITES)])
        return made


def write_folder(
    folder: WiresharkFolder, read: Source, filter_text: str | None, keylogs: Sequence[str]
) -> tuple[int, KafkaPorts]:
    """
    Write the capture and the profile.

    Args:
        folder: The folder.
        read: The captures, which are about to be read.
        filter_text: Chooses exchanges, whose connections are written; None: all packets are.
        keylogs: Names of key logs, which become a part of the capture.

    Returns:
        The number of packets, and the ports that are Kafka in the profile.

    Raises:
        UsageError: A file can't be written.
    """
    comments = analysis_comments(read.capture, filter_text)
    ports = _ports(read)
    options = replace(
        read.capture.options,
        comments=comments.packets,
        section_comment=comments.section,
        secrets=tuple(block for name in keylogs for block in _blocks(name)),
    )
    capture = Capture(read.capture.paths, options)
    try:
        profile = folder.path / "profiles" / PROFILE
        profile.mkdir(parents=True, exist_ok=True)
        if keylogs:
            folder.capture.unlink(missing_ok=True)  # the new file would have its mode
        if filter_text is None:
            with written_when_complete(folder.capture) as file:
                count, _ = write_packets(capture.paths, None, file, options)
        else:
            count = export_capture(capture, filter_text, folder.capture, connections=True).packets
        for name, text in profile_files(ports).items():
            with written_when_complete(profile / name) as file:
                file.write(text.encode())
    except OSError as error:
        raise UsageError(f"{error.filename or folder.path}: {error.strerror}") from None
    return count, ports


def _ports(read: Source) -> KafkaPorts:
    """Return the ports of a capture; reading it reports what is wrong with it."""
    read.explains_no_kafka = True
    for window in read.each_window():
        del window  # frees its memory before the next window is read
    assert read.capture.reading is not None
    return kafka_ports(read.capture.reading)


def _blocks(keylog: str) -> Iterator[bytes]:
    """Yield a key log in blocks of whole lines."""
    block = bytearray()
    try:
        with Path(keylog).open("rb") as file:
            for line in file:
                block += line
                if len(block) >= _BLOCK_BYTES:
                    yield bytes(block)
                    block.clear()
    except OSError as error:
        raise UsageError(f"{keylog}: {error.strerror}") from None
    if block:
        yield bytes(block)
