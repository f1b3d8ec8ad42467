"""Audit of connections and name lookups of this process, by Python's audit hook."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

_EVENTS = ("socket.connect", "socket.getaddrinfo", "socket.sendto")

_listening: list[set[str]] = []


@contextlib.contextmanager
def connects() -> Iterator[set[str]]:
    """Record each `host:port` while the block runs; calls within C libraries are not seen."""
    _install()
    seen: set[str] = set()
    _listening.append(seen)
    try:
        yield seen
    finally:
        _listening.remove(seen)


@cache
def _install() -> None:
    sys.addaudithook(_record)  # can't be removed


def _record(event: str, arguments: tuple[Any, ...]) -> None:
    if not _listening or event not in _EVENTS:
        return
    host, port = arguments[:2] if event == "socket.getaddrinfo" else arguments[1][:2]
    for seen in _listening:
        seen.add(f"{host}:{port}")
