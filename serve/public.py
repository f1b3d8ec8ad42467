"""The Python interface: a capture served in a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, TypeVar

from dissector.query.capture_sources import Sources
from replay.client.auth import Security
from serve.fallback.chosen_fallback import chosen_fallback
from serve.faults.fault import Fault
from serve.recording.recording_reader import read_recording
from serve.report.serve_report import Miss, SeenRequest, ServeReport
from serve.server.cassette_server import CassetteServer
from serve.server.serve_options import ServeOptions, parse_latency
from serve.traffic.served_traffic import ServedTraffic

_T = TypeVar("_T")


class Cassette:
    """
    A capture that stands in for a broker, from `__enter__` to `__exit__`.

        with Cassette("orders.pcap", strict=True) as cassette:
            consume(cassette.bootstrap)
        assert not cassette.misses

    Attributes:
        bootstrap: `host:port` of all brokers, with commas.
        addresses: `host:port` of each broker, by node id.
        report: Counts of requests, and the misses.
    """

    def __init__(
        self,
        *captures: Sources,
        strict: bool = False,
        upstream: str | None = None,
        upstream_security: Security = Security(),  # noqa: B008 (frozen)
        record: str | Path | None = None,
        latency: float | str = "none",
        follows_producers: bool = False,
        faults: Iterable[tuple[str, str]] = (),
        ports: Iterable[int] = (),
        keylogs: Iterable[str | Path] = (),
        options: ServeOptions | None = None,
    ) -> None:
        """
        Prepare a server on loopback.

        Args:
            captures: Parts of one capture in time order, as `open_capture` takes them.
            strict: Whether produced records are compared, and nothing but the capture answers.
            upstream: `HOST:PORT[,...]` of a cluster that answers what the capture lacks; without
                one and without `strict`, the embedded broker does, if it is installed.
            upstream_security: Encryption and authentication of connections to it.
            record: A pcapng file for the exchanges that were answered in place of the capture.
            latency: `recorded`, `none`, or a factor of the captured latency.
            follows_producers: Whether partitions that the capture shows being produced to have the
                records of clients, in place of the captured ones.
            faults: Pairs of a display filter and an action, as for `kafkashark serve --fault`.
            ports: Treat captured connections on these ports as Kafka, and no others.
            keylogs: Names of TLS key logs.
            options: Address, TLS and limits.
        """
        self.bootstrap = ""
        self.addresses: dict[int, str] = {}
        self.report = ServeReport(keeps_requests=True)
        self._captures = captures
        self._faults = [Fault.of(*each) for each in faults]
        self._ports = tuple(ports)
        self._keylogs = tuple(keylogs)
        self._options = replace(
            options or ServeOptions(),
            is_strict=strict,
            latency=parse_latency(str(latency)),
            follows_producers=follows_producers,
        )
        self._upstream = upstream, upstream_security
        self._record = record
        self._stop: Callable[[], None] = lambda: None

    @property
    def misses(self) -> Sequence[Miss]:
        """What clients asked that the capture has no answer to."""
        return tuple(self.report.misses)

    @property
    def requests(self) -> Sequence[SeenRequest]:
        """What clients asked, in order."""
        return tuple(self.report.requests)

    def __enter__(self) -> Self:
        """
        Read the capture and listen.

        Raises:
            CaptureError: A file is not a capture.
            UsageError: There is nothing to serve, or an address is in use.
        """
        recording = read_recording(*self._captures, ports=self._ports, keylogs=self._keylogs)
        traffic = ServedTraffic(self._record)
        server = CassetteServer(
            recording,
            self._options,
            self.report,
            faults=self._faults,
            fallback=chosen_fallback(*self._upstream, is_strict=self._options.is_strict),
            observe=traffic.observe,
        )
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="kafkashark serve", daemon=True)
        thread.start()

        def stop() -> None:
            _run_in(loop, server.close)
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()
            traffic.__exit__(None, None, None)
            recording.close()

        self._stop = stop
        try:
            _run_in(loop, server.start)
        except BaseException:
            self.__exit__()
            raise
        self.addresses = server.addresses
        self.bootstrap = ",".join(self.addresses.values())
        return self

    def __exit__(self, *_: object) -> None:
        """Close all connections."""
        stop, self._stop = self._stop, lambda: None
        stop()


def _run_in(loop: asyncio.AbstractEventLoop, start: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
    """Run a coroutine in an event loop of another thread; return its result."""
    return asyncio.run_coroutine_threadsafe(start(), loop).result()
