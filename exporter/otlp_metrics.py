"""
Metrics for an OpenTelemetry collector: OTLP's JSON over HTTP, which needs no library.

Source: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding and
https://opentelemetry.io/docs/specs/otel/metrics/data-model/
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from threading import Event, Thread
from typing import Any

from dissector.errors import UsageError
from exporter.metric_families import COUNTER, GAUGE, Family
from exporter.metric_series import Sample, Snapshot
from timeline.output.otlp_collector import SCOPE, Collector, ExportError, is_url

METRICS = "/v1/metrics"
"""Default path of a collector's URL."""

_CUMULATIVE = 2


def metrics_request(snapshot: Snapshot, begin_ns: int, time_ns: int) -> dict[str, Any]:
    """
    Return an `ExportMetricsServiceRequest`.

    Args:
        snapshot: The metrics.
        begin_ns: Since when counters count.
        time_ns: Time of the snapshot.
    """
    times = {"startTimeUnixNano": str(begin_ns), "timeUnixNano": str(time_ns)}
    service = {"key": "service.name", "value": {"stringValue": SCOPE}}
    metrics = [_metric(family, samples, times) for family, samples in snapshot if samples]
    scope = {"scope": {"name": SCOPE}, "metrics": metrics}
    return {"resourceMetrics": [{"resource": {"attributes": [service]}, "scopeMetrics": [scope]}]}


def _metric(family: Family, samples: Any, times: dict[str, str]) -> dict[str, Any]:
    points = [_point(family, each) | times for each in samples]
    unit = "s" if family.name.endswith("_seconds") else "By" if "_bytes" in family.name else "1"
    found: dict[str, Any] = {"name": family.name, "description": family.meaning, "unit": unit}
    if family.kind == GAUGE:
        return found | {"gauge": {"dataPoints": points}}
    data: dict[str, Any] = {"dataPoints": points, "aggregationTemporality": _CUMULATIVE}
    if family.kind == COUNTER:
        return found | {"sum": data | {"isMonotonic": True}}
    return found | {"histogram": data}


def _point(family: Family, sample: Sample) -> dict[str, Any]:
    pairs = zip(family.labels, sample.label, strict=True)
    named = [{"key": name, "value": {"stringValue": value}} for name, value in pairs]
    if not family.bounds:
        return {"attributes": named, "asInt": str(sample.counts[0])}
    return {
        "attributes": named,
        "count": str(sum(sample.counts)),
        "sum": sample.total,
        "bucketCounts": [str(each) for each in sample.counts],
        "explicitBounds": [each / family.unit for each in family.bounds],
    }


class MetricsSender:
    """
    Sends metrics to a collector every few seconds, by a thread of its own.

    Args:
        url: The collector.
        interval_s: Time between two exports, in seconds.
        snapshot: Returns the metrics.
        warn: Gets a failure, once until another export succeeds.

    Raises:
        UsageError: The URL is none.
    """

    def __init__(
        self,
        url: str,
        interval_s: float,
        snapshot: Callable[[], Snapshot],
        warn: Callable[[str], None],
    ) -> None:
        if not is_url(url):
            raise UsageError(f"--otlp takes the URL of a collector, not {url!r}")
        self._collector = Collector(url, METRICS, "application/json", "metrics")
        self._interval_s, self._snapshot, self._warn = interval_s, snapshot, warn
        self._begin_ns = time.time_ns()
        self._ended = Event()
        self._thread = Thread(target=self._send_repeatedly, daemon=True)
        self._thread.start()

    def send(self) -> None:
        """
        Send the metrics once.

        Raises:
            ExportError: The collector refuses them, or is unreachable.
        """
        request = metrics_request(self._snapshot(), self._begin_ns, time.time_ns())
        self._collector.post(json.dumps(request).encode())

    def finish(self) -> None:
        """
        End the thread, and send the last metrics.

        Raises:
            ExportError: The collector refuses them, or is unreachable.
        """
        self._ended.set()
        self._thread.join()
        self.send()

    def _send_repeatedly(self) -> None:
        has_failed = False
        while not self._ended.wait(self._interval_s):
            try:
                self.send()
                has_failed = False
            except ExportError as error:
                if not has_failed:
                    self._warn(str(error))
                has_failed = True
