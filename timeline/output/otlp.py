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
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

from dissector.errors import DissectorError, UsageError
from dissector.installation import extra_needed
from timeline.output.messaging_spans import Span

BATCH = 1_000
"""Spans per line or request."""

TIMEOUT_S = 30

TRACES = "/v1/traces"
"""Default path of a collector's URL."""

SCHEMA_URL = "https://opentelemetry.io/schemas/1.37.0"
SCOPE = "kafkashark"

_ERROR = 2
"""Status code of spans with an error."""


class ExportError(DissectorError):
    """A collector rejected spans, or was unreachable."""


def is_url(target: str) -> bool:
    """Return whether a target is the URL of a collector."""
    return target.lower().startswith(("http://", "https://"))


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
    request = _prepared(url)
    shown = urlsplit(request.full_url)._replace(query="").geturl()
    count = 0
    for batch in _batches(spans):
        request.data = _encoded(batch)
        _post(request, shown)
        count += len(batch)
    return count


def _prepared(url: str) -> Request:
    """Return a request for the endpoint of a URL, with the credentials in the URL."""
    parts = urlsplit(url)
    user, at, place = parts.netloc.rpartition("@")
    path = TRACES if parts.path in ("", "/") else parts.path
    headers = {"Content-Type": "application/x-protobuf", "User-Agent": SCOPE}
    if at:
        headers["Authorization"] = f"Basic {b64encode(unquote(user).encode()).decode()}"
    target = parts._replace(netloc=place, path=path).geturl()
    return Request(target, headers=headers, method="POST")


def _post(request: Request, shown: str) -> None:
    request.remove_header("Content-length")  # remains from the previous batch
    try:
        with urlopen(request, timeout=TIMEOUT_S) as answer:
            answer.read()
    except HTTPError as error:
        raise ExportError(f"{shown}: the collector refuses spans: HTTP {error.code}") from None
    except (URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise ExportError(f"{shown}: spans can't be sent: {reason}") from None


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
