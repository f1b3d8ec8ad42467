"""
Denials by the broker's authorizer, and the resources that they name.

Source: KIP-11 (authorization), KIP-48 (delegation tokens), KIP-98 (transactional ids).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dissector.protocol.error_codes import error_name
from timeline.events.observed_exchange import ObservedExchange
from timeline.events.words import listed

_FIELDS = {
    "TOPIC_AUTHORIZATION_FAILED": ("topic", ("name", "topic", "topic_name", "resource_name")),
    "GROUP_AUTHORIZATION_FAILED": ("group", ("group_id", "group", "key", "resource_name")),
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": (
        "transactional id",
        ("transactional_id", "v3_and_below_transactional_id", "key"),
    ),
    "CLUSTER_AUTHORIZATION_FAILED": ("cluster", ()),
    "DELEGATION_TOKEN_AUTHORIZATION_FAILED": ("delegation token", ()),
}
"""Error -> kind of the resource, and the fields that may name it."""

DENIALS = frozenset(_FIELDS)
"""Errors by which a broker denies an operation to an authenticated client."""


def denials(observed: ObservedExchange) -> Iterator[tuple[str, str]]:
    """Yield each error of a denial in a response once, with the denied resources."""
    found: dict[str, dict[str, None]] = {}
    for code, chain in _errors(observed.response, []):
        error = error_name(code)
        if error in DENIALS:
            found.setdefault(error, {})[_name(observed, error, chain)] = None
    for error, names in found.items():
        kind, known = _FIELDS[error][0], [name for name in names if name]
        plural = "" if len(known) <= 1 else "s"
        yield error, f"{kind}{plural} {listed(known)}" if known else kind


def _errors(value: Any, chain: list[Any]) -> Iterator[tuple[int, list[Any]]]:
    """Yield the error codes of a body, with the structures around each, from the outermost."""
    if isinstance(value, list):
        for each in value:
            yield from _errors(each, chain)
    elif isinstance(value, dict):
        inside = [*chain, value]
        for name, content in value.items():
            if name.endswith("error_code") and content:
                yield content, inside
            elif isinstance(content, list | dict):
                yield from _errors(content, inside)


def _name(observed: ObservedExchange, error: str, chain: list[Any]) -> str:
    """Return the name of the denied resource; empty if the messages do not have it."""
    kind, fields = _FIELDS[error]
    request = [] if observed.request is None else [observed.request]
    for part in (*reversed(chain), *request):
        for field in fields:
            if isinstance(part.get(field), str):
                return str(part[field])
        if kind == "topic" and part.get("topic_id"):
            return observed.topic(part)
    return ""
