"""What Python users see of us, and the three functions with which they begin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from dissector.engine.capture import Capture, Options
from dissector.engine.exchange import Exchange
from dissector.engine.frames import MAX_FRAME_BYTES
from dissector.errors import (
    CaptureError,
    DecodeError,
    DissectorError,
    EncodeError,
    FilterError,
    Problem,
)
from dissector.protocol.apis import Api, Kind, all_apis, api
from dissector.protocol.codec import Codec
from dissector.protocol.messages import Message, decode_request, decode_response

__all__ = [
    "Api",
    "Capture",
    "CaptureError",
    "DecodeError",
    "DissectorError",
    "EncodeError",
    "Exchange",
    "FilterError",
    "Message",
    "Options",
    "Problem",
    "all_apis",
    "api",
    "codec",
    "decode_request",
    "decode_response",
    "dissect",
    "open_capture",
]


def codec(api_key: int, version: int, kind: Kind) -> Codec:
    """
    Return the Construct of one body: `.parse(bytes)` gives a Container, `.build(mapping)` bytes.

    Args:
        api_key: As in Kafka's protocol: 0 is Produce.
        version: Any version that ever existed.
        kind: `request` or `response`.

    Raises:
        DecodeError: There is no such API, version or kind.
    """
    found = api(api_key)
    if found is None:
        raise DecodeError(f"API key {api_key} is not known")
    if kind not in ("request", "response"):
        raise DecodeError(f"{kind!r} is neither request nor response")
    return found.schema(kind).codec(version)


def open_capture(
    *captures: str | Path,
    ports: Iterable[int] = (),
    max_frame_bytes: int = MAX_FRAME_BYTES,
    stdin: BinaryIO | None = None,
) -> Capture:
    """
    Return a capture; its files are opened when it is read.

    Args:
        captures: Files in time order that are one capture (a rotated set); `-` is standard input.
        ports: Take connections on these ports for Kafka, and leave all others alone; by default
            Kafka is recognised by its content on any port.
        max_frame_bytes: Larger frames are passed over as a problem.
        stdin: What `-` reads instead of the process's standard input.
    """
    return Capture(
        captures,
        Options(ports=frozenset(ports), max_frame_bytes=max_frame_bytes, stdin=stdin),
    )


def dissect(*captures: str | Path, ports: Iterable[int] = ()) -> Iterator[Exchange]:
    """
    Yield the exchanges of a capture in the order in which they end.

    Raises:
        CaptureError: A file can't be opened, or is no capture.
    """
    return iter(open_capture(*captures, ports=ports))
