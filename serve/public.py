"""Python interface: a capture served in a thread."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Self

from cluster.client.auth import Security
from cluster.client.loop_thread import LoopThread
from dissector.query.capture_sources import Sources
from serve.fallback.chosen_fallback import chosen_fallback
from serve.faults.fault import Fault
from serve.recording.recording_reader import read_recording
from serve.report.serve_report import Miss, SeenRequest, ServeReport
from serve.server.cassette_server import CassetteServer
from serve.server.serve_options import ServeOptions, parse_latency
from serve.traffic.served_traffic import ServedTraffic


class Cassette:
    """
    Stand-in brokers for a capture, from `__enter__` to `__exit__`.

        with Cassette("orders.pcap", strict=True) as cassette:
            consume(cassette.bootstrap)
        assert not cassette.misses

    Attributes:
        bootstrap: Addresses of all brokers as `host:port`, separated by commas.
        addresses: Node id -> `host:port`.
        report: Counts of requests, and misses.
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
        Configure a server on loopback.

        Args:
            captures: Parts of one capture in any order; same types as for `open_capture`. Without
                any, `upstream` answers all.
            strict: Disable fallbacks, and compare produced records with the captured ones.
            upstream: `HOST:PORT[,...]` of a fallback cluster. By default the embedded broker, if
                installed, answers requests without a captured answer, unless `strict`.
            upstream_security: Encryption and authentication for `upstream`.
            record: A pcapng file for exchanges answered by the fallback.
            latency: `recorded`, `none`, or a factor of the captured latency.
            follows_producers: Serve the records of live producers to consumers, instead of captured
                produced records.
            faults: Pairs of a display filter and an action, as for `kafkashark serve --fault`.
            ports: Kafka ports of the capture; by default Kafka is detected on all ports.
            keylogs: TLS key log files.
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
        self._stack = ExitStack()

    @property
    def misses(self) -> Sequence[Miss]:
        """Requests without a captured answer."""
        return tuple(self.report.misses)

    @property
    def requests(self) -> Sequence[SeenRequest]:
        """All requests in order."""
        return tuple(self.report.requests)

    def __enter__(self) -> Self:
        """
        Read the capture and open the listeners.

        Raises:
            CaptureError: A file is not a capture.
            UsageError: The capture has no exchange to serve, an address is in use, or there is
                neither a capture nor an `upstream` that can be reached.
        """
        with ExitStack() as stack:
            recording = read_recording(*self._captures, ports=self._ports, keylogs=self._keylogs)
            stack.callback(recording.close)
            traffic = stack.enter_context(ServedTraffic(self._record))
            server = CassetteServer(
                recording,
                self._options,
                self.report,
                faults=self._faults,
                fallback=chosen_fallback(*self._upstream, is_strict=self._options.is_strict),
                observe=traffic.observe,
            )
            loop = stack.enter_context(LoopThread("kafkashark serve", daemon=True))
            stack.callback(lambda: loop.run(server.close()))
            loop.run(server.start())
            self._stack = stack.pop_all()
        self.addresses = server.addresses
        self.bootstrap = ",".join(self.addresses.values())
        return self

    def __exit__(self, *_: object) -> None:
        """Close all connections."""
        self._stack.close()
