"""The command `kafkashark record`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from cluster.security_options import TargetOptions, tell
from dissector.cli.declared.reading_options import FilterOptions, RingOptions
from dissector.cli.parsing.declarations import REQUIRED, option, with_prefix
from dissector.file_roles import WRITES
from serve.listener_options import FaultOptions, ListenerTlsOptions

if TYPE_CHECKING:
    from record.packets.packet_sink import PacketSink
    from record.relay.relay_server import RelayServer
    from record.relay.relay_settings import RelaySettings

EXIT_INCOMPLETE = 2
DEFAULT_ADDRESS = "127.0.0.1:9092"
_SWITCH_S = 0.0005
"""How long the thread that writes packets may keep the one that forwards waiting."""


class ListenerOptions(ListenerTlsOptions):
    """The options for TLS between clients and the listeners of a recording."""

    heading: ClassVar[str] = "Security of the listeners"
    listener_prefix: ClassVar[str] = "listener-"


with_prefix(ListenerOptions, ListenerOptions.listener_prefix)


class RecordOptions(FilterOptions, FaultOptions, RingOptions, TargetOptions, ListenerOptions):
    """The options of `record`."""

    to: str = option(
        "--to",
        default=REQUIRED,
        metavar="HOST:PORT[,...]",
        help="The cluster.",
    )
    listen: str = option(
        "--listen",
        default=DEFAULT_ADDRESS,
        metavar="HOST:PORT",
        help="Address of the first listener; the others listen on the next ports. Port 0 selects "
        "free ports. Every client that can connect reaches the cluster.",
    )
    output: str = option(
        *("-o", "--output"),
        default=REQUIRED,
        metavar="OUT.pcapng",
        help="The recording; - is standard output.",
        role=WRITES,
    )
    command: Sequence[str] = option(
        default=(),
        metavar="[-- COMMAND...]",
        help="Run a program with $KAFKA_BOOTSTRAP_SERVERS and the like, end with it, and pass its "
        "exit status on.",
    )


def record(given: RecordOptions) -> int:
    """Record the traffic of clients with a cluster, until Ctrl-C.

    Clients connect to the listeners in place of the brokers. Bytes pass unchanged, but for the
    addresses of brokers in responses. The file has the plaintext, and reads like a capture.
    """
    import asyncio

    from dissector.cli.live_input import ring_of
    from record.packets.packet_sink import PacketSink
    from record.packets.recording_files import RecordingFiles

    settings = _settings(given)
    sink = PacketSink(RecordingFiles(given.output, ring_of(given.ring)), tell)
    try:
        status, server = asyncio.run(_record(settings, sink, given.command))
    finally:
        sink.close()
    for line in _summary(server, sink, given.output):
        tell(line)
    return EXIT_INCOMPLETE if sink.failure or (sink.lost_bytes and not status) else status


def _settings(given: RecordOptions) -> RelaySettings:
    from record.public import chosen_exchanges, following
    from record.relay.relay_settings import RelaySettings
    from serve.faults.fault import Fault
    from serve.server.serve_options import parse_listener

    host, port = parse_listener(given.listen)
    return RelaySettings(
        targets=given.to.split(","),
        security=following(given.security()),
        host=host,
        port=port,
        tls=given.listener_tls(),
        faults=[Fault.of(*each) for each in given.faults],
        chosen=None if given.filter_text is None else chosen_exchanges(given.filter_text),
        warn=tell,
    )


async def _record(
    settings: RelaySettings, sink: PacketSink, command: Sequence[str]
) -> tuple[int, RelayServer]:
    """Record until the program ends, or a signal; return the exit status."""
    import asyncio
    import signal
    import sys
    from contextlib import suppress

    from record.child_process import run_child
    from record.relay.relay_server import RelayServer

    sys.setswitchinterval(_SWITCH_S)
    server = RelayServer(settings, sink)
    loop = asyncio.get_running_loop()
    await server.start()
    tell(f"{', '.join(settings.targets)} is reached at {server.bootstrap}")
    if command:
        waiting = loop.create_task(run_child(command, server.bootstrap))
        # A terminal gives Ctrl-C to the program too: it ends by itself, and we with it.
        loop.add_signal_handler(signal.SIGINT, lambda: None)
        loop.add_signal_handler(signal.SIGTERM, waiting.cancel)
    else:
        tell("recording; press Ctrl-C to end")
        waiting = loop.create_task(_wait_forever())
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(each, waiting.cancel)
    try:
        status = 0
        with suppress(asyncio.CancelledError):
            status = await waiting
        return status, server
    finally:
        await server.close()


async def _wait_forever() -> int:
    import asyncio

    await asyncio.get_running_loop().create_future()
    return 0


def _summary(server: RelayServer, sink: PacketSink, output: str) -> list[str]:
    counts = server.counts
    lines = [
        f"{_number(counts.requests, 'request')} of {_number(counts.connections, 'connection')} at "
        f"{_number(server.brokers, 'broker')}, {_number(sink.written_bytes, 'byte')} in {output}"
    ]
    if counts.foreign:
        lines.append(f"{_number(counts.foreign, 'connection')} of other protocols, forwarded as is")
    lines += [
        f"{name} took no connection, {count:,} times" for name, count in counts.failed.items()
    ]
    if counts.unread:
        what = _number(counts.unread, "response")
        lines.append(f"{what} with addresses could not be read: clients may go past the recording")
    lines += [f"{count:,} times: {name}" for name, count in counts.faults.items()]
    if sink.lost_bytes:
        lines.append(f"{_number(sink.lost_bytes, 'byte')} are missing in the recording")
    if sink.failure:
        lines.append(f"the recording is incomplete: {sink.failure}")
    return lines


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"
