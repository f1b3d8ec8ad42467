"""Server for a recording, with a listener for each captured broker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from cluster.client.listener import Listener, UnfinishedFrames, why_not_open
from cluster.client.transport import format_address
from dissector.errors import UsageError
from serve.answers.answerer import Answerer, Fallback
from serve.answers.served_state import ServedState
from serve.faults.fault import Fault, Faults
from serve.recording.served_recording import Recording
from serve.report.serve_report import ServeReport
from serve.server.client_session import (
    SASL_VERSIONS,
    SESSION_ERRORS,
    ClientSession,
    GarbageError,
    Observer,
)
from serve.server.serve_options import ServeOptions

_BUFFER_BYTES = 1 << 16


class CassetteServer:
    """
    A server in the running event loop.

    Args:
        recording: The served capture.
        options: Addresses, limits and latency.
        report: Collects requests and misses.
        faults: Faults to inject.
        fallback: Answers misses.
        observe: Called after each exchange.
    """

    def __init__(
        self,
        recording: Recording,
        options: ServeOptions,
        report: ServeReport,
        *,
        faults: Iterable[Fault] = (),
        fallback: Fallback | None = None,
        observe: Observer = lambda request, frame: None,
    ) -> None:
        self._options = options
        self._report = report
        self._state = ServedState(recording)
        self._answerer = Answerer(
            self._state,
            report,
            fallback,
            SASL_VERSIONS,
            follows_producers=options.follows_producers,
            compares=options.is_strict,
        )
        self._faults = Faults(faults, report.faults)
        self._observe = observe
        self._fallback = fallback
        self._listeners: list[Listener] = []
        self._unfinished = UnfinishedFrames(options.max_unfinished_bytes)
        self._open: set[asyncio.Task[None]] = set()

    @property
    def addresses(self) -> dict[int, str]:
        """Node id -> address of the listener."""
        return {node: format_address(*each) for node, each in self._state.addresses.items()}

    async def start(self) -> None:
        """
        Open the listeners.

        Raises:
            UsageError: An address is in use, or not of this machine; or there is no capture, and
                the fallback can't be reached.
            ReplayError: The fallback may not be used.
        """
        versions = {} if self._fallback is None else await self._fallback.prepare()
        if not len(self._state.recording):
            if not versions:
                raise UsageError("no capture, and no --upstream that can be reached")
            self._answerer.cluster.offer(versions)
        cluster = self._state.recording.cluster
        nodes = sorted(cluster.brokers) or [*range(1, max(1, len(cluster.addresses)) + 1)]
        for index, node in enumerate(nodes):
            port = self._options.port + index if self._options.port else 0
            host = self._options.advertised_host or self._options.host
            self._state.addresses[node] = host, await self._listen(port)

    async def close(self) -> None:
        """Close listeners, connections and the fallback."""
        for listener in self._listeners:
            await listener.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        self._report.settle()
        if self._fallback is not None:
            await self._fallback.close()

    async def _listen(self, port: int) -> int:
        host = self._options.host
        listener = Listener(self._make_streams, self._options.tls, self._options.warn)
        try:
            port = await listener.open(host, port)
        except (OSError, OverflowError) as error:
            raise UsageError(f"{format_address(host, port)}: {why_not_open(error)}") from None
        self._listeners.append(listener)
        return port

    def _make_streams(self) -> asyncio.StreamReaderProtocol:
        reader = asyncio.StreamReader(_BUFFER_BYTES)
        return asyncio.StreamReaderProtocol(reader, self._accept)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        report = self._report
        if len(self._open) >= self._options.max_connections:
            report.garbage["too many connections"] += 1
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        number = report.connections
        report.connections += 1
        try:
            session = ClientSession(
                number,
                (reader, writer),
                self._answerer,
                self._options,
                self._faults,
                self._observe,
                self._unfinished,
            )
            try:
                await session.run()
            except GarbageError as error:
                report.garbage[str(error)] += 1
            if not writer.is_closing():
                writer.close()
                await writer.wait_closed()
        except SESSION_ERRORS:
            pass  # the client disconnected
        except asyncio.CancelledError:
            pass  # the server closes
        finally:
            self._open.discard(task)
            if self._fallback is not None:
                self._fallback.forget(number)
            writer.transport.abort()  # close() would wait for clients that do not read
