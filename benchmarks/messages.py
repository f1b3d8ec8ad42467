"""One message: our codec against plain Construct, kafka-python and kio."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import construct

from benchmarks.timing import call_us
from dissector import codec

Row = tuple[str, str, float, str]
"""What is timed, the peer, how many times faster we are, and the figures."""

_BODY = {
    "transactional_id": None,
    "acks": -1,
    "timeout_ms": 30000,
    "topic_data": [
        {
            "name": "orders",
            "partition_data": [{"index": i, "records": bytes(150)} for i in range(3)],
        }
    ],
}


def rows() -> Iterator[Row]:
    """Time the parsing of one Produce v9 request of three partitions."""
    ours = codec(0, 9, "request")
    data = ours.build(_BODY)
    what = f"parse one Produce v9 request of {len(data)} bytes"
    own_us = call_us(lambda: ours.parse(data))
    for peer, call in (
        ("plain Construct", lambda: _PLAIN.parse(data)),
        ("kafka-python", _kafka_python(data)),
        ("kio", _kio(data)),
    ):
        peer_us = call_us(call)
        yield what, peer, peer_us / own_us, f"{own_us:.1f} us against {peer_us:.1f} us"


def _kafka_python(data: bytes):  # type: ignore[no-untyped-def]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from kafka.protocol.producer import ProduceRequest
    return lambda: ProduceRequest.decode(data, version=9)


def _kio(data: bytes):  # type: ignore[no-untyped-def]
    from kio.index import load_request_schema
    from kio.serial import entity_reader

    read = entity_reader(load_request_schema(0, 9))
    return lambda: read(data, 0)


def _compact(item: construct.Construct) -> construct.Construct:
    count = construct.ExprAdapter(
        construct.VarInt, lambda value, _: value - 1, lambda value, _: value + 1
    )
    return construct.FocusedSeq(
        "items", "count" / construct.Rebuild(count, 0), "items" / item(construct.this.count)
    )


_TAGS = construct.PrefixedArray(
    construct.VarInt,
    construct.Struct(
        "tag" / construct.VarInt,
        "data" / construct.Prefixed(construct.VarInt, construct.GreedyBytes),
    ),
)
_PLAIN = construct.Struct(
    "transactional_id" / construct.VarInt,
    "acks" / construct.Int16sb,
    "timeout_ms" / construct.Int32sb,
    "topic_data"
    / _compact(
        lambda count: construct.Array(
            count,
            construct.Struct(
                "name" / _compact(construct.Bytes),
                "partition_data"
                / _compact(
                    lambda count: construct.Array(
                        count,
                        construct.Struct(
                            "index" / construct.Int32sb,
                            "records" / _compact(construct.Bytes),
                            "tags" / _TAGS,
                        ),
                    )
                ),
                "tags" / _TAGS,
            ),
        )
    ),
    "tags" / _TAGS,
)
"""The same request as one would write it in Construct by hand."""
