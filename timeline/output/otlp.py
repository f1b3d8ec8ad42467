"""
Export of spans in OTLP: as lines of JSON in a file, or by HTTP to a collector.

A line or request is an `ExportTraceServiceRequest`, the format of the collector's file receiver.

Source: https://opentelemetry.io/docs/specs/otlp/ and /docs/specs/otel/protocol/file-exporter/
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from dissector.errors import UsageError
from dissector.installation import extra_needed
from timeline.output.messaging_spans import Span
from timeline.output.otlp_collector import SCOPE, Collector

BATCH = 1_000
"""Spans per line or request."""

TRACES = "/v1/traces"
"""Default path of a collector's URL."""

SCHEMA_URL = "https://opentelemetry.io/schemas/1.37.0"

_ERROR = 2
"""Status code of spans with an error."""


def json_lines(spans: Iterable[Span]) -> Iterator[str]:
    """Yield spans as lines of JSON."""
    for batch in _batches(spans):
        yield json.dumps(_request(batch, str), ensure_ascii=False, separators=(",", ":"))


def check_sender() -> None:
    """
    Check that spans can be encoded for a collector.

    Raises:
        UsageError: opentelemetry-proto is not installed.
    """
    try:
        import opentelemetry.proto.collector.trace.v1.trace_service_pb2  # noqa: F401
    except ImportError:
        raise UsageError(extra_needed("--otlp URL", "otlp")) from None


def send(spans: Iterable[Span], url: str) -> int:
    """
    Send spans to a collector; return their number.

    Raises:
        ExportError: The collector is unreachable, or rejects spans.
    """
    collector = Collector(url, TRACES, "application/x-protobuf", "spans")
    count = 0
    for batch in _batches(spans):
        collector.post(_encoded(batch))
        count += len(batch)
    return count


def _batches(spans: Iterable[Span]) -> Iterator[list[Span]]:
    rest = iter(spans)
    while batch := list(islice(rest, BATCH)):
        yield batch


def _request(spans: Iterable[Span], id_text: Callable[[str], str]) -> dict[str, Any]:
    """Return an `ExportTraceServiceRequest` as JSON; `id_text` encodes hexadecimal ids."""
    by_service: dict[str, list[Span]] = {}
    for span in spans:
        by_service.setdefault(span.service, []).append(span)
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes({"service.name": service})},
                "scopeSpans": [
                    {
                        "scope": {"name": SCOPE},
                        "spans": [_span(each, id_text) for each in found],
                        "schemaUrl": SCHEMA_URL,
                    }
                ],
            }
            for service, found in by_service.items()
        ]
    }


def _span(span: Span, id_text: Callable[[str], str]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "traceId": id_text(span.trace_id),
        "spanId": id_text(span.span_id),
        "flags": span.flags,
        "name": span.name,
        "kind": span.kind,
        "startTimeUnixNano": str(span.begin_ns),
        "endTimeUnixNano": str(span.end_ns),
        "attributes": _attributes(span.attributes),
    }
    if span.parent_id:
        found["parentSpanId"] = id_text(span.parent_id)
    if span.error:
        found["status"] = {"code": _ERROR, "message": span.error}
    return found


def _attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "key": name,
            "value": {"intValue": str(value)}
            if isinstance(value, int)
            else {"stringValue": _text(value)},
        }
        for name, value in values.items()
    ]


def _text(text: str) -> str:
    """Replace surrogates, which come from invalid UTF-8."""
    return text.encode("utf-8", "replace").decode()


def _encoded(spans: Iterable[Span]) -> bytes:
    """Return an `ExportTraceServiceRequest` in protobuf."""
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
        ExportTraceServiceRequest,
    )

    message = ParseDict(_request(spans, _base64), ExportTraceServiceRequest())
    raw: bytes = message.SerializeToString()
    return raw


def _base64(digits: str) -> str:
    """Return an id in base64 for protobuf's JSON; OTLP's JSON has hexadecimal digits."""
    return b64encode(bytes.fromhex(digits)).decode()
