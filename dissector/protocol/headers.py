"""
Request and response headers, and the header version of each message.

Two APIs break the rule that flexible messages have flexible headers: the ApiVersions response keeps
header v0, so that a client can read the response of an older broker; the ControlledShutdown v0
request has no client id.

Source: Kafka, RequestHeader.json and ResponseHeader.json; KIP-482, KIP-511.
"""

from __future__ import annotations

from dissector.protocol.apis import api
from dissector.protocol.schema import Int16, Int32, Schema, String, message

API_VERSIONS = 18
CONTROLLED_SHUTDOWN = 7
PRODUCE, FETCH = 0, 1
SASL_HANDSHAKE = 17
SASL_AUTHENTICATE = 36

RequestHeader = message(None, "0-2", flexible="2+")[
    Int16("request_api_key"),
    Int16("request_api_version"),
    Int32("correlation_id"),
    String("client_id", "1+", null="1+", classic=True),
]

ResponseHeader = message(None, "0-1", flexible="1+")[Int32("correlation_id"),]


def request_header_version(key: int, version: int) -> int:
    """
    Return the version of a request's header.

    An unknown version of a known API is assumed to be newer, hence as flexible as the newest known
    version. For an unknown API it is 1: only the part that all headers share can be read.
    """
    if key == CONTROLLED_SHUTDOWN and version == 0:
        return 0
    found = api(key)
    return 2 if found is not None and is_flexible(found.request, version) else 1


def response_header_version(key: int, version: int) -> int:
    """Return the version of a response's header; for an unknown API it is 0."""
    found = api(key)
    if key == API_VERSIONS or found is None:
        return 0
    return 1 if is_flexible(found.response, version) else 0


def is_flexible(schema: Schema, version: int) -> bool:
    """Return whether a version is flexible; one newer than all known is like the newest known."""
    return min(version, schema.versions.high) in schema.flexible
