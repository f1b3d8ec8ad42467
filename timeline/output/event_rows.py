"""Events as rows of ndjson, csv and Parquet."""

from __future__ import annotations

from typing import Any


def event_schema() -> dict[str, Any]:
    """Return the polars type of each column."""
    import polars

    number, text = polars.Int64(), polars.String()
    evidence = polars.Struct(
        {
            "capture": text,
            "connection": number,
            "client": text,
            "client_id": text,
            "broker": text,
            "request_packet": number,
            "response_packet": number,
            "correlation_id": number,
            "api": text,
        }
    )
    return {
        "time_ns": number,
        "end_ns": number,
        "kind": text,
        "subject": text,
        "event": text,
        "cause": text,
        "text": text,
        "evidence": polars.List(evidence),
        "certain": polars.Boolean(),
    }
