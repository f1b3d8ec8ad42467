"""The public Python names of the dissector: its types, and the functions to start with."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from dissector.engine.correlation.framer import MAX_FRAME_BYTES
from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.reading.capture import Capture, Options
from dissector.errors import (
    CaptureError,
    DecodeError,
    DissectorError,
    EncodeError,
    FilterError,
    Problem,
    UnknownCodec,
    UsageError,
)
from dissector.protocol.api import Api, Kind
from dissector.protocol.apis import all_apis, api
from dissector.protocol.codec import Codec
from dissector.protocol.definitions.schemas import Schemas
from dissector.protocol.messages import Message, decode_request, decode_response

__all__ = [
    "Api",
    "Capture",
    "CaptureError",
    "Codec",
    "DecodeError",
    "DissectorError",
    "EncodeError",
    "Exchange",
    "FilterError",
    "Message",
    "Options",
    "Problem",
    "Schemas",
    "UsageError",
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
    Return the Construct of a body: `.parse(bytes)` returns a Container, `.build(mapping)` bytes.

    Args:
        api_key: Kafka's number of the API; 0 is Produce.
        version: Any version that ever existed.
        kind: `request` or `response`.

    Raises:
        DecodeError: There is no such API, version or kind.
    """
    if not isinstance(api_key, int):
        keys = {each.name: each.key for each in all_apis()}
        hint = f"; {api_key} is {keys[api_key]}" if api_key in keys else ""
        raise UnknownCodec(f"codec takes an API key, a number, not {api_key!r}{hint}")
    found = api(api_key)
    if found is None:
        raise UnknownCodec(f"no API has the key {api_key}")
    if kind not in ("request", "response"):
        raise UnknownCodec(f"{kind!r} is neither request nor response")
    schema = found.schema(kind)
    if version not in schema.versions:
        raise UnknownCodec(
            f"{found.name} has no version {version}; known are {schema.versions_text}"
        )
    return schema.codec(version)


def open_capture(
    *captures: str | Path,
    ports: Iterable[int] = (),
    max_frame_bytes: int = MAX_FRAME_BYTES,
    stdin: BinaryIO | None = None,
    schemas: Schemas | Iterable[str | Path] | None = None,
    keylogs: Iterable[str | Path] = (),
) -> Capture:
    """
    Return a capture; its files are opened when it is read.

    Args:
        captures: Files of one capture (a rotated set) in time order; `-` is standard input.
        ports: Treat connections on these ports as Kafka and ignore all others; by default Kafka is
            recognised by its content on any port.
        max_frame_bytes: Larger frames are skipped and reported as a problem.
        stdin: What `-` reads instead of the process's standard input.
        schemas: Message definitions that override the built-in declarations: `Schemas.of(...)`, or
            names of Kafka's JARs and folders of JSON files.
        keylogs: Files with the secrets of TLS connections (NSS key log, RFC 9850).

    Raises:
        UsageError: A capture is not a file name, `ports` or `keylogs` is not a collection, or
            `schemas` holds no definitions.
    """
    for each in captures:
        if not isinstance(each, str | os.PathLike):
            raise UsageError(_explain_bad_name(each))
    if isinstance(ports, str | int):
        raise UsageError(f"ports takes several numbers: ports=[{ports}]")
    if isinstance(keylogs, str | os.PathLike):
        raise UsageError(f"keylogs takes several names: keylogs=[{str(keylogs)!r}]")
    return Capture(
        captures,
        Options(
            ports=frozenset(ports),
            max_frame_bytes=max_frame_bytes,
            stdin=stdin,
            schemas=Schemas.given(schemas),
            keylogs=tuple(map(str, keylogs)),
        ),
    )


def _explain_bad_name(given: object) -> str:
    """Return the message for a capture that is not a file name."""
    if isinstance(given, list | tuple):
        return f"a capture is the name of a file, not a {type(given).__name__}; give *names"
    if hasattr(given, "read"):
        return "a capture is the name of a file; give '-' and the open file as stdin="
    return f"a capture is the name of a file, not {type(given).__name__}"


def dissect(
    *captures: str | Path,
    ports: Iterable[int] = (),
    schemas: Schemas | Iterable[str | Path] | None = None,
    keylogs: Iterable[str | Path] = (),
) -> Iterator[Exchange]:
    """
    Yield the exchanges of a capture in the order in which they end.

    Raises:
        CaptureError: A file can't be opened, or is not a capture.
    """
    return iter(open_capture(*captures, ports=ports, schemas=schemas, keylogs=keylogs))
