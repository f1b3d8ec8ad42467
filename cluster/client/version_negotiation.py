"""API version negotiation on a new connection."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from importlib.metadata import version as version_of
from typing import Any, NamedTuple, TypeAlias

from cluster.client.pending_request import PendingRequest
from dissector.errors import ReplayError
from dissector.protocol.apis.data.api_versions import ApiVersionsRequest
from dissector.protocol.error_codes import error_name
from dissector.protocol.headers import API_VERSIONS
from dissector.protocol.messages import UNSUPPORTED_VERSION, decode_response

_CACHE_SIZE = 16
"""Size of the cache of ApiVersions responses: one entry for each distinct broker."""


_Send: TypeAlias = Callable[[int, int, Mapping[str, Any]], PendingRequest]
"""Sends a request of an API key and version with a body."""


async def negotiate(address: str, send: _Send) -> tuple[dict[int, tuple[int, int]], dict[str, int]]:
    """
    Request the API versions: in our newest version, else one the refusal offers or v0 (KIP-511).

    A refusal may have any layout; only its error code is relied upon.

    Returns:
        API key -> lowest and highest version; feature -> highest version (KIP-584).

    Raises:
        ReplayError: The broker does not return its versions.
    """
    newest = ApiVersionsRequest.versions.high
    offered = await _request_versions(send, newest)
    if offered.error_code == UNSUPPORTED_VERSION:
        api_versions = offered.versions.get(API_VERSIONS)
        offered = await _request_versions(
            send, min(newest - 1, api_versions[1]) if api_versions else 0
        )
    reason = offered.problem or (error_name(offered.error_code) if offered.error_code else "")
    if reason:
        raise ReplayError(address, f"ApiVersions failed: {reason}")
    return offered.versions, offered.features


class _OfferedVersions(NamedTuple):
    """The content of an ApiVersions response; `problem` is empty if it could be decoded."""

    error_code: int
    versions: dict[int, tuple[int, int]]
    features: dict[str, int]
    problem: str


async def _request_versions(send: _Send, version: int) -> _OfferedVersions:
    body = {"client_software_name": "kafkashark", "client_software_version": client_version()}
    request = send(API_VERSIONS, version, body)
    assert request.frame is not None
    return _parse((await request.frame)[4:], version)


@lru_cache(maxsize=_CACHE_SIZE)
def _parse(response: bytes, version: int) -> _OfferedVersions:
    """Decode a response without its correlation id, the same for all connections to a broker."""
    message = decode_response(bytes(4) + response, API_VERSIONS, version)
    body, error_code = message.body, int.from_bytes(response[:2], "big", signed=True)
    if body is None:
        return _OfferedVersions(error_code, {}, {}, str(message.problems[0]))
    keys = {each.api_key: (each.min_version, each.max_version) for each in body.api_keys}
    offered = body.get("supported_features") or ()
    features = {each.name: int(each.max_version) for each in offered}
    return _OfferedVersions(error_code, keys, features, "")


@cache
def client_version() -> str:
    """Return the version of kafkashark."""
    return version_of("kafkashark")
