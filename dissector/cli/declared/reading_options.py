"""Options that commands share: their captures, and how these are read."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar
from uuid import UUID

from dissector.cli.declared.value_options import ValueOptions
from dissector.cli.parsing.declarations import Command, Options, option
from dissector.cli.presentation.completion import complete_filter
from dissector.cli.settings.saved_filters import with_saved_filters
from dissector.file_roles import READS, WRITES, Reads
from dissector.protocol.definitions.sources import READS_SCHEMAS, SCHEMAS_VARIABLE, use_sources
from dissector.protocol.frame_limits import MAX_FRAME_BYTES
from dissector.view.text.escape import escaped


def _use_schemas(sources: Sequence[str]) -> None:
    """Decode by message definitions; report unusable ones."""
    for problem in use_sources(sources):
        print("kafkashark:", escaped(problem), file=sys.stderr)


def _keep_copies(is_wanted: bool) -> None:
    from dissector.engine.reading.connection_copies import keep_copies

    keep_copies(is_wanted)


def _use_timezone(name: str) -> None:
    from dissector.request_log.log_times import use_timezone

    use_timezone(name)


def _use_topic_names(sources: Sequence[str]) -> None:
    from dissector.engine.facts.given_names import use_names

    def names() -> Mapping[UUID, str]:
        from dissector.query.topic_name_sources import names_of

        return names_of(sources)

    use_names(names if sources else dict)


def _topic_name_file(source: str) -> str:
    from dissector.query.topic_name_sources import named_file

    return named_file(source)


def _keep_private(show_secrets: bool) -> None:
    """Make files of this process readable by its user only if they may show secrets."""
    if show_secrets:
        os.umask(0o077)


def _print_interfaces(command: Command) -> None:
    """Print the interfaces as tshark does: a number and a name on a line."""
    import socket

    for number, (_, name) in enumerate(socket.if_nameindex(), 1):
        print(f"{number}. {escaped(name)}")


class CaptureOptions(Options):
    """The captures of a command."""

    captures: Sequence[str] = option(
        metavar="CAPTURE...",
        help="pcap or pcapng files, or brokers' request logs, also compressed, in any order; - is "
        "standard input.",
        role=READS,
    )


class FilterOptions(Options):
    """The filter of a command."""

    filter_text: str | None = option(
        *("-Y", "--filter"),
        default=None,
        metavar="FILTER",
        complete=complete_filter,
        convert=with_saved_filters,
        help="Display filter: take only what matches; @NAME is a filter of the settings.",
    )


class PeriodOptions(FilterOptions):
    """The filter of a command, and the part of the time that it takes."""

    since: str | None = option(
        "--since",
        default=None,
        metavar="TIME",
        help="Take only exchanges that end at this time or later: 10:42, 10:42:30Z, "
        "2026-11-26T10:42:30+01:00, seconds since the epoch; 90, 90s or 5m after the first packet. "
        "Without a zone: local time, with --utc UTC.",
    )
    until: str | None = option(
        "--until",
        default=None,
        metavar="TIME",
        help="Take only exchanges that begin before this time, in the forms of --since.",
    )

    @property
    def selected(self) -> str | None:
        """
        The filter with the period.

        Raises:
            UsageError: A time has none of the forms, or the period is empty.
        """
        if self.since is None and self.until is None:
            return self.filter_text
        from dissector.cli.period import in_period

        # Not all commands that take a period print times; those that do may be asked for UTC.
        utc = getattr(self, "utc", False) or getattr(self, "times", None) in ("u", "ud")
        captures: Sequence[str] = getattr(self, "captures", ())
        live = bool(getattr(self, "interfaces", ()))
        return in_period(self.filter_text, self.since, self.until, captures, utc=utc, live=live)


class OutputOptions(Options):
    """The destination of rows, lines or packets."""

    output: str | None = option(
        *("-o", "--output"),
        default=None,
        metavar="FILE",
        help="Write to a file, not to stdout.",
        role=WRITES,
    )


class ReportFileOptions(Options):
    """Files of the report that a command prints."""

    report: tuple[str, ...] = option(
        "--report",
        "-o",
        default=(),
        metavar="FILE",
        help="Also write the report, as .txt, .ndjson, .xml (JUnit) or .html. Repeatable.",
        role=WRITES,
    )


class SchemaSourceOptions(Options):
    """Message definitions."""

    heading: ClassVar[str] = "Reading"

    schemas: tuple[str, ...] = option(
        "--schemas",
        setting="shared",
        default=(),
        metavar="JAR|DIR",
        callback=_use_schemas,
        help="Message definitions that override the built-in ones: kafka-clients' JAR, or a folder "
        f"of JSON files. May be given more than once; by default those of ${SCHEMAS_VARIABLE}.",
        role=READS_SCHEMAS,
    )


class DecodingOptions(SchemaSourceOptions):
    """How captures are decoded, by each command that reads some."""

    heading: ClassVar[str] = "Reading"

    ports: tuple[int, ...] = option(
        "--port",
        setting="shared",
        default=(),
        metavar="N",
        least=1,
        most=65535,
        help="Treat connections on this port as Kafka, and no others. May be given more than once. "
        "By default Kafka is recognised by its content, on any port.",
    )
    keylogs: tuple[str, ...] = option(
        "--keylog",
        setting="shared",
        default=(),
        metavar="FILE",
        help="TLS key log (NSS key log, RFC 9850). May be given more than once; secrets inside "
        "pcapng files are used without it.",
        role=READS,
    )
    decode_as: tuple[str, ...] = option(
        "--decode-as",
        setting="shared",
        default=(),
        metavar="RULE",
        help="Tunnel on another UDP port, as udp.port==10800,vxlan: vxlan, vxlan-gpe, geneve, gtp "
        "or mpls. May be given more than once.",
    )
    timezone: str = option(
        "--timezone",
        setting="shared",
        default="UTC",
        metavar="ZONE",
        callback=_use_timezone,
        help="Zone of times without one in request logs: Europe/Berlin, +02:00, local; by default "
        "UTC.",
    )
    topic_names: tuple[str, ...] = option(
        "--topic-names",
        default=(),
        metavar="FILE|HOST:PORT",
        callback=_use_topic_names,
        help="Names of topic ids that the capture lacks: the output of kafka-topics.sh --describe, "
        "JSON, another capture; or a broker (without TLS) to ask. May be given more than once.",
        role=Reads(path_in=_topic_name_file),
    )


class FrameOptions(Options):
    """The limit of messages."""

    heading: ClassVar[str] = "Reading"

    max_frame_bytes: int = option(
        "--max-frame-bytes",
        default=MAX_FRAME_BYTES,
        metavar="N",
        least=1,
        help="Larger messages are skipped and reported as a problem.",
    )


class CopyOptions(Options):
    """Connections that a capture holds twice."""

    heading: ClassVar[str] = "Reading"

    keep_copies: bool = option(
        "--keep-copies",
        setting="shared",
        default=False,
        callback=_keep_copies,
        help="Count connections twice that the capture holds twice: before and behind a NAT, in "
        "two VLANs or tunnels, at two taps.",
    )


class SecretOptions(Options):
    """Whether secrets are shown."""

    heading: ClassVar[str] = "Reading"

    show_secrets: bool = option(
        "--show-secrets",
        default=False,
        callback=_keep_private,
        help="Show passwords, tokens and salts instead of ***; files are then mode 0600.",
    )


class ReadingOptions(CaptureOptions, DecodingOptions, FrameOptions, ValueOptions):
    """All that a reading of captures depends on."""

    heading: ClassVar[str] = "Reading"

    jobs: int | None = option(
        "--jobs",
        default=None,
        metavar="N",
        least=1,
        help="Stages of reading that may run in parallel; by default the number of cores.",
    )


class RingOptions(Options):
    """A ring of files, for packets that come without an end."""

    heading: ClassVar[str] = "Live capture"

    ring: str | None = option(
        "--ring",
        default=None,
        metavar="files:N,filesize:KB",
        help="Keep the last N of the files with packets, each of this size.",
    )


class LiveOptions(RingOptions, CaptureOptions):
    """Capturing in place of captures."""

    heading: ClassVar[str] = "Live capture"

    captures: Sequence[str] = option(
        default=(),
        metavar="CAPTURE...",
        help="pcap or pcapng files, or brokers' request logs, also compressed, in any order; - is "
        "standard input.",
        role=READS,
    )
    interfaces: tuple[str, ...] = option(
        *("-i", "--interface"),
        default=(),
        metavar="IFACE",
        help="Capture on this interface, with dumpcap or else tcpdump, until Ctrl-C. May be given "
        "more than once.",
    )
    list_interfaces: bool = option(
        *("-D", "--list-interfaces"),
        default=False,
        instead=_print_interfaces,
        help="List the interfaces, and end.",
    )
    capture_filter: str = option(
        *("-f", "--capture-filter"),
        default="",
        metavar="BPF",
        help="With -i: capture only these packets, as in 'tcp port 9092' (pcap-filter).",
    )
    autostop: tuple[str, ...] = option(
        *("-a", "--autostop"),
        default=(),
        metavar="duration:S|packets:N|filesize:KB",
        help="With -i: when the capture ends. May be given more than once.",
    )
    file_to_keep: Path | None = option(
        *("-w", "--keep"),
        default=None,
        metavar="FILE",
        help="With -i: keep the packets in a file, too.",
        role=WRITES,
    )
