"""Lines of request logs, as brokers and proxies write them."""

from __future__ import annotations

import json
from typing import Any

HEARTBEAT = {"groupId": "billing", "generationId": 3, "memberId": "m-1", "groupInstanceId": None}


def exchange(
    *,
    key: int = 12,
    name: str = "HEARTBEAT",
    version: int = 3,
    correlation_id: int = 7,
    client_id: str | None = "bill",
    request: Any = HEARTBEAT,
    response: Any = None,
    connection: str = "127.0.0.1:9092-127.0.0.1:56684-0-4",
    total_ms: float = 2.925,
    **more: Any,
) -> dict[str, Any]:
    """Return the object of an exchange, in Kafka's order."""
    return {
        "isForwarded": False,
        "requestHeader": {
            "requestApiKey": key,
            "requestApiVersion": version,
            "correlationId": correlation_id,
            "clientId": client_id,
            "requestApiKeyName": name,
        },
        "request": json.loads(json.dumps(request)),
        "response": {"throttleTimeMs": 0, "errorCode": 27} if response is None else response,
        "connection": connection,
        "totalTimeMs": total_ms,
        "requestQueueTimeMs": 0.44,
        "localTimeMs": 0.619,
        "remoteTimeMs": 1.646,
        "throttleTimeMs": 0,
        "responseQueueTimeMs": 0.064,
        "sendTimeMs": 0.154,
        "securityProtocol": "SASL_SSL",
        "principal": "User:alice",
        "listener": "EXTERNAL",
        "clientInformation": {"softwareName": "librdkafka", "softwareVersion": "2.16.0"},
        **more,
    }


def compact(value: Any) -> str:
    """Return JSON as Jackson writes it."""
    return json.dumps(value, separators=(",", ":"))


def line(value: dict[str, Any] | None = None, time: str = "2026-11-26 17:24:58,835") -> str:
    """Return a line of log4j's usual layout."""
    body = compact(exchange() if value is None else value)
    return f"[{time}] DEBUG Completed request:{body} (kafka.request.logger)\n"


def protocol_object(
    kind: str, payload: Any, *, api: str = "HEARTBEAT", version: int = 3, correlation_id: int = 7
) -> str:
    """Return an object of Kroxylicious' protocol log, over several lines."""
    header = {
        "type": kind,
        "apiKey": api,
        "apiVersion": version,
        "correlationId": correlation_id,
        **({"clientId": "bill"} if kind == "REQUEST" else {}),
    }
    return json.dumps({"header": header, "payload": payload}, indent=2, separators=(",", " : "))
