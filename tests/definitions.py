"""Message definitions for tests: a vendor's API with key 600, and a capture of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dissector.protocol.context import using
from dissector.protocol.definitions.schemas import Schemas
from tests import default_frames, tcp_captures

PING_REQUEST: dict[str, Any] = {
    "apiKey": 600,
    "type": "request",
    "name": "VendorPingRequest",
    "validVersions": "0-1",
    "flexibleVersions": "1+",
    "commonStructs": [
        {
            "name": "Point",
            "versions": "0+",
            "fields": [
                {"name": "X", "type": "int16", "versions": "0+"},
                {"name": "Topic", "type": "string", "versions": "0+", "entityType": "topicName"},
            ],
        }
    ],
    "fields": [
        {"name": "Points", "type": "[]Point", "versions": "0+"},
        {"name": "AccessToken", "type": "string", "versions": "0+"},
        {
            "name": "Extra",
            "type": "int32",
            "versions": "1+",
            "default": "-1",
            "taggedVersions": "1+",
            "tag": 0,
        },
    ],
}

PING_RESPONSE: dict[str, Any] = {
    "apiKey": 600,
    "type": "response",
    "name": "VendorPingResponse",
    "validVersions": "0-1",
    "flexibleVersions": "1+",
    "fields": [
        {"name": "ErrorCode", "type": "int16", "versions": "0+"},
        {"name": "Node", "type": "int32", "versions": "0+"},
    ],
}


def written(folder: Path, *definitions: Mapping[str, Any]) -> str:
    """Write definitions into a folder, each with a comment; return its name."""
    folder.mkdir(parents=True, exist_ok=True)
    for each in definitions:
        (folder / f"{each['name']}.json").write_text(f"// A comment.\n{json.dumps(each)}")
    return str(folder)


def vendor(folder: Path) -> str:
    """Write the definitions of the vendor's API."""
    return written(folder, PING_REQUEST, PING_RESPONSE)


def write_pings(path: Path, definitions: str, count: int) -> str:
    """Write a capture of a connection with alternating versions of pings, after Metadata."""
    wire = tcp_captures.Wire()
    connection = wire.connect().syn()
    connection.client(default_frames.request(3, 9, 1, "vendor")).broker(
        default_frames.response(3, 9, 1)
    )
    with using(Schemas.of(definitions)):
        for number in range(2, count + 2):
            points = [{"x": number, "topic": f"t{number % 3}"}]
            body = {"points": points, "access_token": "hush-hush"}
            connection.client(default_frames.request(600, number % 2, number, "vendor", **body))
            connection.broker(
                default_frames.response(600, number % 2, number, error_code=number % 4, node=7)
            )
    return tcp_captures.write(path, wire.packets)
