"""
The columns of all tables, in order: name, type and meaning.

`--list-columns`, the page docs/fields.md, the types of Parquet columns and the names that `--sort`
and `--columns` accept are made of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias


class ColumnInfo(NamedTuple):
    """
    A column.

    Attributes:
        name: As printed.
        type: A key of `POLARS_TYPES` in `frames`.
        meaning: In a few words.
    """

    name: str
    type: str
    meaning: str


Catalogue: TypeAlias = tuple[ColumnInfo, ...]


def names(columns: Sequence[ColumnInfo]) -> tuple[str, ...]:
    """Return the names of columns."""
    return tuple(each.name for each in columns)


_API = ColumnInfo("api", "str", "name of the API")
_CAPTURE = ColumnInfo("capture", "str", "file of the message")
_CLIENT_ID = ColumnInfo("client_id", "str", "client id of the request")
_CONNECTION = ColumnInfo("connection", "int", "number of the TCP connection, as tcp.stream")
_CORRELATION_ID = ColumnInfo("correlation_id", "int32", "id that request and response share")
_LATENCY = ColumnInfo("latency_ms", "float", "time from request to response in milliseconds")
_ORIGIN = ColumnInfo(
    "origin", "str", "client before a proxy, by its PROXY header; or CONNECT and its target"
)
_STATUS = ColumnInfo(
    "status", "str", "answered, unanswered, no_response (none is due), orphan, one_sided"
)

EXCHANGES: Catalogue = (
    _CAPTURE,
    _CONNECTION,
    ColumnInfo("client", "str", "address and port of the sender of the request"),
    ColumnInfo("broker", "str", "address and port of the other side"),
    _ORIGIN,
    ColumnInfo("api_key", "int16", "number of the API"),
    _API,
    ColumnInfo("api_version", "int16", "version of the request"),
    _CORRELATION_ID,
    _CLIENT_ID,
    _STATUS,
    ColumnInfo("request_packet", "int", "packet that completed the request, from 1"),
    ColumnInfo("response_packet", "int", "packet that completed the response, from 1"),
    ColumnInfo("request_time_ns", "int", "time of that packet, ns since the epoch"),
    ColumnInfo("response_time_ns", "int", "time of the response's packet, ns since the epoch"),
    _LATENCY,
    ColumnInfo(
        "network_ms",
        "float",
        "part of latency_ms: RTT to the broker, bytes sent again, transfer of the response",
    ),
    ColumnInfo(
        "server_ms", "float", "the rest of latency_ms: the broker, to its response's first byte"
    ),
    ColumnInfo("request_bytes", "int", "size of the request without its 4-byte length"),
    ColumnInfo("response_bytes", "int", "size of the response without its 4-byte length"),
    ColumnInfo("errors", "strs", "names of the errors in the response, each once"),
    ColumnInfo("topics", "strs", "topics of request and response, each once"),
    ColumnInfo("problems", "strs", "damage and doubts: field, byte, reason"),
)
"""The columns of `pairs`."""

FROM_BODIES: Catalogue = (
    ColumnInfo("info", "str", "what is asked, and the answer, in plain words (on request)"),
)
"""Columns that `pairs` has on request, as bodies are read for them."""

ACCOUNTS: Catalogue = (
    ColumnInfo("broker_ms", "float", "time from the request's arrival to the response's end"),
    ColumnInfo("queue_ms", "float", "time of the request in the broker's queue"),
    ColumnInfo("local_ms", "float", "time of the broker's own work: its log, its caches"),
    ColumnInfo("remote_ms", "float", "time it waited for others: followers, members, records"),
    ColumnInfo("throttle_ms", "float", "time that a quota held the response back"),
    ColumnInfo("response_queue_ms", "float", "time of the response in the broker's queue"),
    ColumnInfo("send_ms", "float", "time to write the response to the connection"),
    ColumnInfo("outside_ms", "float", "latency_ms less broker_ms: network, client (--with)"),
    ColumnInfo("principal", "str", "who sent the request: User:alice"),
    ColumnInfo("listener", "str", "name of the broker's listener"),
    ColumnInfo("security_protocol", "str", "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL"),
    ColumnInfo("client_software", "str", "name and version of the client's software"),
)
"""Columns that `pairs` also has of request logs, where the broker itself says it."""

RECORDS: Catalogue = (
    _CONNECTION,
    _CORRELATION_ID,
    _API,
    _CLIENT_ID,
    ColumnInfo("packet", "int", "packet that completed the message with the record, from 1"),
    ColumnInfo("time_ns", "int", "time of that packet, ns since the epoch"),
    ColumnInfo("topic", "str", "name of the topic; null if only its id is known"),
    ColumnInfo("topic_id", "str", "id of the topic, if the message has one"),
    ColumnInfo("partition", "int32", "number of the partition"),
    ColumnInfo("offset", "int", "offset in the log; of a Produce request by its response"),
    ColumnInfo("timestamp_ms", "int", "timestamp of the record, ms since the epoch"),
    ColumnInfo("key", "bytes", "key; null without one"),
    ColumnInfo("value", "bytes", "value; null is a tombstone"),
    ColumnInfo("headers", "headers", "headers in order: key and value"),
    ColumnInfo("magic", "int8", "format of the batch: 0, 1 or 2"),
    ColumnInfo("codec", "str", "compression of the batch: none, gzip, snappy, lz4, zstd"),
    ColumnInfo("producer_id", "int", "id of an idempotent producer; else -1"),
    ColumnInfo("producer_epoch", "int16", "epoch of that producer; else -1"),
    ColumnInfo("sequence", "int32", "sequence number of the record; else -1"),
    ColumnInfo("transactional", "bool", "whether it belongs to a transaction"),
    ColumnInfo("control", "str", "type of a control record (COMMIT, ABORT); else null"),
    _STATUS,
    ColumnInfo("acks", "int16", "acks of a Produce request: -1 (all), 0, 1; else null"),
    ColumnInfo("error", "str", "result of a Produce request for the partition; else null"),
)
"""The columns of `records`."""

VALUES: Catalogue = tuple(
    ColumnInfo(f"{side}_{name}", "str", meaning.format(side=side))
    for side in ("key", "value")
    for name, meaning in (
        ("format", "format of the {side}: avro, protobuf, json, debezium+avro, text, ..."),
        ("schema", "subject and version of its schema, or the id"),
        ("decoded", "the {side} as JSON, by its schema or format; else null"),
        ("problem", "why the {side} does not decode"),
    )
)
"""Columns that `records` has on request."""

VALUE_USES: Catalogue = (
    ColumnInfo("topic", "str", "name of the topic"),
    ColumnInfo("part", "str", "key or value"),
    ColumnInfo("format", "str", "format of the keys or values; null where it is unknown"),
    ColumnInfo("schema", "str", "subject and version of their schema, or the id"),
    ColumnInfo("before", "str", "schema, or else format, whose use began before, if any"),
    ColumnInfo("records", "int", "records in Produce requests and Fetch responses"),
    ColumnInfo("undecoded", "int", "those of them that do not decode"),
    ColumnInfo("problem", "str", "why the first of them does not"),
    ColumnInfo("writers", "strs", "client ids that produced such records"),
    ColumnInfo("readers", "strs", "client ids that fetched such records"),
    ColumnInfo("first_packet", "int", "packet with the first of them, from 1"),
    ColumnInfo("last_packet", "int", "packet with the last of them, from 1"),
    ColumnInfo("first_time_ns", "int", "time of the first of these packets, ns since the epoch"),
    ColumnInfo("last_time_ns", "int", "time of the last of these packets, ns since the epoch"),
)
"""The columns of `schemas`."""

EVENTS: Catalogue = (
    ColumnInfo("time_ns", "int", "time of the event, ns since the epoch"),
    ColumnInfo("end_ns", "int", "its end; equal to time_ns for an instant"),
    ColumnInfo("kind", "str", "group, producer, transaction, consumer, connection or cluster"),
    ColumnInfo("subject", "str", "the group, producer, transactional id, client or connection"),
    ColumnInfo("event", "str", "name of the event"),
    ColumnInfo("cause", "str", "its cause in a few words; unknown if the capture has none"),
    ColumnInfo("count", "int", "number of equal events"),
    ColumnInfo("text", "str", "description in a sentence"),
    ColumnInfo("evidence", "evidence", "the exchanges that prove it, in packet order"),
    ColumnInfo("certain", "bool", "whether the capture proves event and cause"),
)
"""The columns of `timeline`."""

MESSAGES: Catalogue = (
    _CAPTURE,
    ColumnInfo("packet", "int", "packet that completed the message, from 1"),
    ColumnInfo("time_ns", "int", "time of that packet, ns since the epoch"),
    _CONNECTION,
    ColumnInfo("source", "str", "address and port of the sender"),
    ColumnInfo("target", "str", "address and port of the receiver"),
    ColumnInfo("kind", "str", "request or response"),
    ColumnInfo("api_key", "int16", "number of the API"),
    _API,
    ColumnInfo("api_version", "int16", "version of the message"),
    _CORRELATION_ID,
    _CLIENT_ID,
    ColumnInfo("bytes", "int", "size without the 4-byte length"),
    _STATUS,
    _LATENCY,
    ColumnInfo("errors", "strs", "names of the errors in a response, each once"),
    ColumnInfo("topics", "strs", "topics of a request and its response, each once"),
    ColumnInfo("problems", "strs", "damage and doubts: field, byte, reason"),
)
"""The columns of `dissect`; `-T ndjson` adds `body`."""

_SIDE_COLUMNS = (
    ("packets", "packets with payload or flags"),
    ("bytes", "bytes of the stream"),
    ("retransmissions", "segments that were sent again"),
    ("retransmitted", "bytes that were sent again"),
    ("gaps", "gaps in the stream"),
    ("gap_bytes", "bytes that are not in the capture"),
    ("cut_bytes", "bytes cut off by the snapshot length"),
    ("late_bytes", "bytes that arrived after they were reported as a gap"),
    ("skipped", "bytes without a plausible Kafka frame"),
    ("entered", "offset of the first plausible Kafka frame"),
    ("acked_not_captured", "bytes that the other side acknowledged, and no captured packet has"),
    ("zero_window_ms", "milliseconds in which a receive window of zero was announced"),
    ("rtt_ms", "milliseconds from the SYN to its acknowledgement: capture to the other side, back"),
    ("srtt_ms", "smoothed RTT of bytes (RFC 6298): from the capture to the other side and back"),
)

TLS: Catalogue = (
    ColumnInfo("tls_version", "str", "version of TLS"),
    ColumnInfo("tls_cipher", "str", "cipher suite"),
    ColumnInfo("tls_server_name", "str", "server name of the handshake"),
    ColumnInfo("tls_resumed", "str", "whether a session was resumed: yes or no"),
    ColumnInfo("tls_client", "str", "subject of the client's certificate"),
    ColumnInfo("tls_not_decrypted", "str", "reason why the connection is not decrypted"),
)
"""TLS columns of `streams`; null for connections without TLS, and if unknown."""

CONNECTIONS: Catalogue = (
    _CONNECTION,
    ColumnInfo("network", "str", "VLAN or tunnel of the packets"),
    ColumnInfo("a", "str", "side that opened the connection, or sent first"),
    ColumnInfo("b", "str", "the other side"),
    ColumnInfo("speaks", "str", "kafka, tls or other; null if no bytes were sent"),
    ColumnInfo("protocols", "str", "protocols of a and b by their first bytes: kafka / tls alert"),
    ColumnInfo("client", "str", "side that sends requests: a or b"),
    _ORIGIN,
    ColumnInfo("first_time_ns", "int", "time of the first packet, ns since the epoch"),
    ColumnInfo("last_time_ns", "int", "time of the last packet, ns since the epoch"),
    ColumnInfo("ended", "str", "how the connection ended; null while it is open"),
    ColumnInfo("copy_of", "int", "the connection that this is a copy of, seen at another place"),
    ColumnInfo("not_captured", "str", "side without packets, though the other acknowledged them"),
    ColumnInfo("rtt_ms", "float", "RTT of the handshake: SYN to the ACK of the SYN/ACK"),
    *(
        ColumnInfo(
            f"{name}_{side}",
            "float" if name.endswith("_ms") else "int",
            f"{meaning}, from side {side}",
        )
        for name, meaning in _SIDE_COLUMNS
        for side in ("a", "b")
    ),
    *TLS,
)
"""The columns of `streams`."""

STATISTICS: Catalogue = (
    _API,
    _CLIENT_ID,
    ColumnInfo("client", "str", "address of the client"),
    ColumnInfo("topic", "str", "a topic of the exchanges"),
    ColumnInfo("broker", "str", "address and port of the broker"),
    ColumnInfo("count", "int", "exchanges"),
    ColumnInfo("errors", "int", "exchanges with an error"),
    ColumnInfo("unanswered", "int", "requests without the response that is due"),
    *(
        ColumnInfo(f"{name}_ms", "float", f"{meaning} of the latencies in milliseconds")
        for name, meaning in (
            *(("min", "least"), ("p50", "median"), ("p95", "95th percentile")),
            *(("p99", "99th percentile"), ("max", "greatest")),
        )
    ),
    ColumnInfo("request_bytes", "int", "bytes of the requests"),
    ColumnInfo("response_bytes", "int", "bytes of the responses"),
    ColumnInfo("time", "str", "begin of the interval in UTC (--by '10 s')"),
    ColumnInfo("hour", "str", "hour of the exchanges in UTC (--by hour)"),
    ColumnInfo("minute", "str", "minute of the exchanges in UTC (--by minute)"),
    ColumnInfo("second", "str", "second of the exchanges in UTC (--by second)"),
    ColumnInfo("api_version", "int", "version of the requests (--by version, --topics)"),
    ColumnInfo("error", "str", "an error of the responses (--by error)"),
    ColumnInfo("group", "str", "a group that requests name (--by group)"),
    ColumnInfo("partition", "str", "topic and number of a partition (--by partition)"),
    ColumnInfo("key_schema", "str", "a schema of keys of records (--by key_schema)"),
    ColumnInfo("value_schema", "str", "a schema of values of records (--by value_schema)"),
    ColumnInfo("software_name", "str", "the client's library, of its ApiVersions request"),
    ColumnInfo("software_version", "str", "version of the library"),
    ColumnInfo("errors_by_name", "strs", "errors of the responses with their numbers (--by)"),
    ColumnInfo("connections", "int", "TCP connections (--clients, --talkers)"),
    ColumnInfo("bytes", "int", "bytes of requests and responses (--talkers)"),
    *(
        ColumnInfo(f"{side}_{name}_bytes", "int", f"{meaning} of the sizes of {side}s (--sizes)")
        for side in ("request", "response")
        for name, meaning in (("p50", "median"), ("p99", "99th percentile"), ("max", "greatest"))
    ),
    *(
        ColumnInfo(f"{part}_{name}_ms", "float", f"{meaning} of {part}_ms (--network)")
        for part in ("network", "server")
        for name, meaning in (
            *(("p50", "median"), ("p95", "95th percentile")),
            ("p99", "99th percentile"),
        )
    ),
    ColumnInfo("origin", "str", "client before a proxy (--by origin)"),
    ColumnInfo("principal", "str", "who sent the requests (--by principal)"),
    ColumnInfo("listener", "str", "the broker's listener (--by listener)"),
    ColumnInfo("security_protocol", "str", "that of the listener (--by security_protocol)"),
    *(
        ColumnInfo(
            f"{each.name.removesuffix('_ms')}_{kind}_ms",
            "float",
            f"{meaning} of {each.name} of `pairs` (--broker-times)",
        )
        for each in ACCOUNTS
        if each.type == "float" and each.name != "outside_ms"
        for kind, meaning in (("mean", "mean"), ("p95", "95th percentile"))
    ),
)
"""The columns of `stats`, and of its tables by options."""

GROUPS: Catalogue = (
    ColumnInfo("group", "str", "name of the group"),
    ColumnInfo("type", "str", "classic, consumer, share or streams"),
    ColumnInfo("protocol", "str", "type of the protocol, as consumer or connect"),
    ColumnInfo("state", "str", "last state"),
    ColumnInfo("generation", "int", "last generation; with KIP-848 the epoch of the group"),
    ColumnInfo("rebalances", "int", "number of increases of the generation in the capture"),
    ColumnInfo("assignor", "str", "the chosen assignor"),
    ColumnInfo("coordinator", "str", "address and port of the coordinator"),
    ColumnInfo("members", "int", "members at the end of the capture"),
    ColumnInfo("lag", "int", "high watermark less committed offset; of a group, the sum"),
    ColumnInfo("member_id", "str", "id of the member; of a partition, of its owner"),
    ColumnInfo("instance_id", "str", "group.instance.id of a static member"),
    ColumnInfo("client_id", "str", "client id of the member"),
    ColumnInfo("client", "str", "address of the member"),
    ColumnInfo("topics", "strs", "topics that the member subscribes to"),
    ColumnInfo("assignment", "strs", "topics with the assigned partitions: orders(0,1)"),
    ColumnInfo("leader", "bool", "whether the member is the leader of a classic group"),
    ColumnInfo("left", "bool", "whether it left, or is not in the last generation"),
    ColumnInfo("topic", "str", "name of the topic"),
    ColumnInfo("partition", "int", "number of the partition"),
    ColumnInfo("committed", "int", "last committed offset"),
    ColumnInfo("high_watermark", "int", "last high watermark in a Fetch response"),
    ColumnInfo("time", "str", "end of the interval in UTC (--interval)"),
    ColumnInfo("change_per_s", "float", "change of the lag since the row before (--interval)"),
    ColumnInfo("note", "str", "what holds it up: no member, stuck, grows (--interval)"),
)
"""The columns of `groups`, of its tables."""

UPGRADES: Catalogue = (
    _CLIENT_ID,
    ColumnInfo("client", "str", "address of the client"),
    ColumnInfo("software", "str", "the client's library, or the broker's release; may be a guess"),
    _API,
    ColumnInfo("api_version", "int", "version of the requests"),
    ColumnInfo("count", "int", "requests"),
    ColumnInfo("spoken", "str", "versions supported by the release"),
    ColumnInfo("removed_in", "str", "release that removed the version"),
    ColumnInfo("kips", "strs", "KIPs that describe the removal"),
    ColumnInfo("verdict", "str", "breaks or negotiates; of a broker, breaks, unused or unknown"),
    ColumnInfo("broker", "str", "address and port of the broker (--clients)"),
    ColumnInfo("offered", "str", "versions that the broker offers (--clients)"),
    ColumnInfo("needed", "str", "versions supported by clients of the release (--clients)"),
)
"""The columns of `upgrade`, of clients and of brokers."""
