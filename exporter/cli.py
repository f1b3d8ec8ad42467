"""The command `kafkashark exporter`."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from dissector.cli.declared.reading_options import (
    CopyOptions,
    LiveOptions,
    OutputOptions,
    PeriodOptions,
    ReadingOptions,
)
from dissector.cli.parsing.declarations import option

if TYPE_CHECKING:
    from exporter.capture_metrics import CaptureMetrics

DEFAULT_ADDRESS = "127.0.0.1:9308"
INTERVAL_S = 15.0


class ExporterOptions(PeriodOptions, OutputOptions, ReadingOptions, CopyOptions, LiveOptions):
    """The options of `exporter`."""

    listen: str | None = option(
        "--listen",
        default=None,
        metavar="HOST:PORT",
        help=f"Address of the HTTP server; by default {DEFAULT_ADDRESS}, without -o and --otlp. "
        "Port 0 selects a free port. Who can connect can read the metrics.",
    )
    otlp: str | None = option(
        "--otlp",
        default=None,
        metavar="URL",
        help="Send the metrics to an OpenTelemetry collector, as OTLP/HTTP in JSON.",
    )
    interval: float = option(
        "--interval",
        default=INTERVAL_S,
        metavar="S",
        least=0.1,
        help=f"Seconds between two exports to --otlp or -o; by default {INTERVAL_S:g}.",
    )
    max_series: int = option(
        "--max-series",
        default=200,
        metavar="N",
        least=1,
        most=100_000,
        help="Labels of a metric beyond the first N are counted as one, `other`; by default 200.",
    )
    dashboard: bool = option(
        "--dashboard", default=False, help="Print a dashboard for Grafana, and end."
    )


def exporter(given: ExporterOptions) -> None:
    """Serve the figures of traffic to Prometheus: latencies, sizes, errors, rebalances, lag.

    The figures of captures are served until Ctrl-C, those of an interface or a pipe until it ends.

    Live: kafkashark exporter -i eth0 -f 'tcp port 9092'
    """
    if given.dashboard:
        from importlib.resources import files

        from dissector.cli.output import write_lines

        text = files("exporter").joinpath("dashboard.json").read_text(encoding="utf-8")
        write_lines([text], given.output, end="")
        return
    # All is loaded before a live capture begins: its first packets must not wait.
    from dissector.cli.live_input import accepts_live
    from exporter import capture_metrics, metrics_server, otlp_metrics  # noqa: F401

    accepts_live(_exporter)(given)


def _exporter(given: ExporterOptions) -> None:
    from contextlib import ExitStack

    from dissector.cli import capture_source
    from exporter.capture_metrics import CaptureMetrics
    from exporter.metrics_server import MetricsServer
    from exporter.otlp_metrics import MetricsSender
    from serve.server.serve_options import parse_listener

    source = capture_source.source(given, given.selected)
    source.capture.forget_connections()
    metrics = CaptureMetrics(source, given.max_series)
    address = given.listen
    if address is None and given.output is None and given.otlp is None:
        address = DEFAULT_ADDRESS

    due_s = time.monotonic() + given.interval

    def after_window() -> None:
        nonlocal due_s
        metrics.refresh()
        if given.output is not None and time.monotonic() >= due_s:
            _write(metrics, given.output)
            due_s = time.monotonic() + given.interval

    source.after_window = after_window
    with ExitStack() as stack:
        if address is not None:
            server = MetricsServer(*parse_listener(address), metrics.snapshot)
            stack.callback(server.close)
            _say(f"metrics are at {server.url}")
        sender = None
        if given.otlp is not None:
            sender = MetricsSender(given.otlp, given.interval, metrics.snapshot, _say)
        for part in source.without_secrets(source.parts(), show_secrets=False):
            metrics.add(part)
        metrics.refresh(is_last=True)
        if given.output is not None:
            _write(metrics, given.output)
        if address is not None and not source.is_live:
            _wait_for_end()
        if sender is not None:
            sender.finish()


def _write(metrics: CaptureMetrics, output: str) -> None:
    """Write the metrics to a file, which is replaced at once: another program reads it."""
    from dissector.cli.output import open_atomic
    from exporter.prometheus_text import prometheus_lines

    text = "".join(f"{line}\n" for line in prometheus_lines(metrics.snapshot()))
    with open_atomic(output) as file:
        file.write(text.encode())


def _wait_for_end() -> None:
    """Wait for Ctrl-C or SIGTERM: the normal end of a server, unless it came before."""
    import signal
    from threading import Event

    from dissector.cli import interrupt

    if interrupt.is_interrupted():
        return
    _say("all is read; press Ctrl-C to end")
    ended = Event()
    with interrupt.restored_handlers():
        for number in interrupt.SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, lambda *_: ended.set())
        ended.wait()


def _say(text: str) -> None:
    from dissector.view.text.escape import escaped

    print("kafkashark:", escaped(text), file=sys.stderr, flush=True)
