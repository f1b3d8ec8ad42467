"""Python interface: the traffic with a cluster, recorded in a thread."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from cluster.client.auth import Security
from cluster.client.loop_thread import LoopThread
from dissector.errors import UsageError
from dissector.filter import Filter, parse
from record.packets.packet_sink import PacketSink
from record.packets.recording_files import RecordingFiles
from record.relay.exchange_selection import LIVE_COLUMNS
from record.relay.relay_server import RelayServer
from record.relay.relay_settings import RelayCounts, RelaySettings
from serve.faults.fault import Fault


class Recorder:
    """
    Listens in place of the brokers of a cluster, from `__enter__` to `__exit__`.

        with Recorder("orders.pcapng", to="broker:9092") as recorder:
            consume(recorder.bootstrap)

    Attributes:
        bootstrap: Addresses for clients, `host:port`, separated by commas.
        counts: What was seen.
    """

    def __init__(
        self,
        file: str | Path,
        *,
        to: str | Sequence[str],
        security: Security = Security(),  # noqa: B008 (frozen)
        faults: Iterable[tuple[str, str]] = (),
        filter_text: str | None = None,
    ) -> None:
        """
        Configure a recording on loopback.

        Args:
            file: The pcapng file to write.
            to: `HOST:PORT[,...]` of the cluster.
            security: Encryption and login at the cluster. By default clients log in themselves.
            faults: Pairs of a display filter and an action, as for `kafkashark serve --fault`.
            filter_text: A display filter: record only exchanges that pass; None records all.
        """
        self.bootstrap = ""
        self.counts = RelayCounts()
        self._file = str(file)
        self._settings = RelaySettings(
            targets=to.split(",") if isinstance(to, str) else tuple(to),
            security=following(security),
            faults=[Fault.of(*each) for each in faults],
            chosen=None if filter_text is None else chosen_exchanges(filter_text),
        )
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """
        Open the file and the listeners.

        Raises:
            UsageError: The file can't be written, or an address is none.
        """
        with ExitStack() as stack:
            sink = PacketSink(RecordingFiles(self._file), self._settings.warn)
            stack.callback(sink.close)
            loop = stack.enter_context(LoopThread("kafkashark record", daemon=True))
            server = loop.run(_started(self._settings, sink))
            stack.callback(lambda: loop.run(server.close()))
            self._stack = stack.pop_all()
        self.bootstrap, self.counts = server.bootstrap, server.counts
        return self

    def __exit__(self, *_: object) -> None:
        """Close all connections, and the file."""
        self._stack.close()


def chosen_exchanges(text: str) -> Filter:
    """
    Parse a filter for exchanges as they pass.

    Raises:
        FilterError: It is invalid.
        UsageError: It tests packets, which do not exist then.
    """
    chosen = parse(text)
    if unknown := sorted(chosen.columns - LIVE_COLUMNS):
        raise UsageError(f"-Y of record can't test {', '.join(unknown)}: there are no packets yet")
    return chosen


def following(security: Security) -> Security:
    """
    Return settings that allow all hosts that the cluster names, if there is no secret to lose.

    A client would connect to them as well, and it is the client that sends.
    """
    has_secret = security.mechanism or security.tls is not None
    return security if has_secret else security.with_hosts((), True, False)


async def _started(settings: RelaySettings, sink: PacketSink) -> RelayServer:
    server = RelayServer(settings, sink)
    await server.start()
    return server
