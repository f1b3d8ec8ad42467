"""The public Python names of the dissector: its types, and the functions to start with."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from uuid import UUID

from dissector.capture.packets.decode_as import tunnel_ports
from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.facts.given_names import given_names
from dissector.engine.reading.capture import Options
from dissector.errors import (
    CaptureError,
    DecodeError,
    DissectorError,
    EncodeError,
    FilterError,
    Problem,
    UnknownCodec,
    UsageError,
    suggestion,
)
from dissector.notebook_forms import register_form
from dissector.protocol.api import Api, Kind
from dissector.protocol.apis import all_apis, api_keys
from dissector.protocol.apis import api as api_of_key
from dissector.protocol.codecs.codec import Codec
from dissector.protocol.definitions.schemas import Schemas
from dissector.protocol.frame_limits import MAX_FRAME_BYTES
from dissector.protocol.messages import Message, decode_request, decode_response
from dissector.query.capture_sources import Sources, named_inputs
from dissector.query.filtered_capture import Capture
from dissector.query.selection import check_filter
from dissector.request_log.log_times import timezone_of, used_timezone
from dissector.view.text.notebook import codec_html

if TYPE_CHECKING:
    from dissector.values.value_settings import ValueSettings

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


def codec(api_key: int | str, version: int, kind: Kind) -> Codec:
    """
    Return the Construct of a body: `.parse(bytes)` returns a Container, `.build(mapping)` bytes.

    Args:
        api_key: Kafka's number of the API, or its name: 0 or `Produce`.
        version: Any version that ever existed.
        kind: `request` or `response`.

    Raises:
        DecodeError: The API, version or kind does not exist.
    """
    found = _known_api(api_key)
    if kind not in ("request", "response"):
        raise UnknownCodec(f"{kind!r} is neither request nor response")
    schema = found.schema(kind)
    if version not in schema.versions:
        raise UnknownCodec(
            f"{found.name} has no version {version}; known are {schema.versions_text}"
        )
    made = schema.codec(version)
    if not made.label:
        made.label = f"{found.name} v{version} {kind}"
        made.fields = {path: each.type for path, each in schema.iter_fields(version)}
    return made


register_form(Codec, codec_html)


def api(api_key: int | str) -> Api | None:
    """Return the API of a key or a name, with its declarations; None where it is not known."""
    try:
        return _known_api(api_key)
    except UnknownCodec:
        return None


def _known_api(api_key: int | str) -> Api:
    """Return the API of a key or a name."""
    names = api_keys()
    key = names.get(api_key) if isinstance(api_key, str) else api_key
    found = None if key is None else api_of_key(key)
    if found is None:
        if isinstance(api_key, str):
            raise UnknownCodec(f"no API has the name {api_key!r}{suggestion(api_key, names)}")
        raise UnknownCodec(f"no API has the key {api_key!r}")
    return found


def open_capture(
    *captures: Sources,
    filter: str | None = None,
    ports: Iterable[int] = (),
    max_frame_bytes: int = MAX_FRAME_BYTES,
    stdin: BinaryIO | None = None,
    schemas: Schemas | Iterable[str | Path] | None = None,
    keylogs: Iterable[str | Path] = (),
    decode_as: Iterable[str] = (),
    keep_copies: bool = False,
    timezone: str | None = None,
    topic_names: Iterable[str | Path] | Mapping[UUID, str] | None = None,
    values: Iterable[str | Path] | None = None,
    value_formats: Iterable[str] = (),
    values_user: str = "",
    scripts: Iterable[str | Path] = (),
    masks: Iterable[str] = (),
    jobs: int = 1,
) -> Capture:
    """
    Return a capture; its files are opened on reading.

        with open_capture("a.pcap", filter="api == Produce and error") as capture:
            for exchange in capture:
                print(exchange.client_id, exchange.errors)
            capture.records()  # a polars.DataFrame; see the methods of Capture

    Args:
        captures: Parts of one capture (a rotated set) in any order, also in lists: names of files
            (`-` is standard input), file objects open for reading bytes, contents of files as
            bytes. Without any, packets are given to `Capture.feed`. A file object is read from its
            position, stays open, and can be read once only if it is not seekable.
        filter: A display filter: only matching exchanges are returned. `records` filters by columns
            of records too.
        ports: Treat connections on these ports as Kafka and ignore all others; by default Kafka is
            recognised by its content on any port.
        max_frame_bytes: Larger frames are skipped and reported as a problem.
        stdin: Replaces standard input for `-`.
        schemas: Message definitions that override the built-in declarations: `Schemas.of(...)`, or
            names of Kafka's JARs and folders of JSON files.
        keylogs: Files with the secrets of TLS connections (NSS key log, RFC 9850).
        decode_as: Tunnels on other UDP ports than their usual ones: `udp.port==10800,vxlan`.
        keep_copies: Count connections twice that the capture holds twice: before and behind a NAT,
            in two VLANs or tunnels, at two taps.
        timezone: Zone of times without one in request logs: `Europe/Berlin`, `+02:00`, `local`;
            by default UTC.
        topic_names: Names of topic ids, besides those in the capture: a mapping, or files and
            brokers (`host:port`) as of `--topic-names`.
        values: Files, folders and URLs of registries with schemas of keys and values, besides
            those in the capture; `records` then has the columns of decoded keys and values.
            Empty: only those in the capture; None: none of these columns.
        value_formats: Formats of topics, such as `orders=avro:order.avsc` or `orders.key=json`;
            they add these columns too.
        values_user: `NAME:PASSWORD` for the registries.
        scripts: Files of Python with hooks that decode keys and values, or are rules of `conform`.
        masks: What tables hide, as `--mask` does: `value.card`, `key`, `header.NAME`, and the bytes
            of all keys and values. `records` then has the columns of decoded ones. Objects
            (`Exchange`, `Message`) still have the bytes of messages.
        jobs: Stages of reading that may run in parallel.

    Raises:
        FilterError: The filter does not parse.
        UsageError: An input is not a capture, `ports` or `keylogs` is not a collection, a
            rule of `decode_as` or the zone is invalid, or `schemas` holds no definitions. A source
            in `values` without schemas raises it when records are read. A mask is not a path.
    """
    names, inputs = named_inputs(captures)
    if isinstance(ports, str | int):
        raise UsageError(f"ports takes several numbers: ports=[{ports}]")
    if isinstance(keylogs, str | os.PathLike):
        raise UsageError(f"keylogs takes several names: keylogs=[{str(keylogs)!r}]")
    if isinstance(decode_as, str):
        raise UsageError(f"decode_as takes several rules: decode_as=[{decode_as!r}]")
    if isinstance(values, str | os.PathLike):
        raise UsageError(f"values takes several names: values=[{str(values)!r}]")
    if isinstance(scripts, str | os.PathLike):
        raise UsageError(f"scripts takes several names: scripts=[{str(scripts)!r}]")
    if isinstance(value_formats, str):
        raise UsageError(f"value_formats takes several: value_formats=[{value_formats!r}]")
    if isinstance(masks, str):
        raise UsageError(f"masks takes several: masks=[{masks!r}]")
    rules = tuple(decode_as)
    tunnel_ports(rules)
    zone = used_timezone() if timezone is None else timezone
    timezone_of(zone)
    if filter is not None:
        check_filter(filter)
    return Capture(
        names,
        Options(
            ports=frozenset(ports),
            max_frame_bytes=max_frame_bytes,
            stdin=stdin,
            schemas=Schemas.given(schemas),
            keylogs=tuple(map(str, keylogs)),
            decode_as=rules,
            keep_copies=keep_copies,
            timezone=zone,
            topic_names=_given_names(topic_names),
            values=_value_settings(
                values,
                values_user,
                formats=tuple(value_formats),
                scripts=tuple(map(str, scripts)),
                masks=tuple(masks),
            ),
            jobs=jobs,
            inputs=inputs,
        ),
        filter,
    )


def _given_names(given: Iterable[str | Path] | Mapping[UUID, str] | None) -> Mapping[UUID, str]:
    if given is None:
        return given_names()
    if isinstance(given, Mapping):
        return dict(given)
    if isinstance(given, str | os.PathLike):
        raise UsageError(f"topic_names takes several: topic_names=[{str(given)!r}]")
    from dissector.query.topic_name_sources import names_of

    return names_of(given)


def _value_settings(
    values: Iterable[str | Path] | None,
    user: str,
    *,
    formats: tuple[str, ...],
    scripts: tuple[str, ...],
    masks: tuple[str, ...],
) -> ValueSettings | None:
    if values is None and not (formats or scripts or masks):
        return None
    from dissector.values.value_masks import ValueMasks
    from dissector.values.value_settings import ValueSettings

    ValueMasks(masks)
    names = tuple(map(str, values or ()))
    return ValueSettings(names, formats, user=user, masks=masks, scripts=scripts)


def dissect(
    *captures: Sources,
    filter: str | None = None,
    ports: Iterable[int] = (),
    schemas: Schemas | Iterable[str | Path] | None = None,
    keylogs: Iterable[str | Path] = (),
) -> Iterator[Exchange]:
    """
    Yield the exchanges of a capture in the order of their ends; see `open_capture`.

    Raises:
        CaptureError: A file can't be opened, or is not a capture.
        FilterError: The filter does not parse.
    """
    return iter(
        open_capture(*captures, filter=filter, ports=ports, schemas=schemas, keylogs=keylogs)
    )
