"""Faults of frames, headers, order, versions, primitive types and sequences of messages."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

from conform.registry.rule import Side
from tests.conform.study.changes import (
    CLIENTS,
    DATA,
    GROUPS,
    IDEMPOTENT,
    SASL,
    TRANSACTIONS,
    broker_faults,
    client_faults,
    put,
)
from tests.conform.study.script import Fault, Script, ScriptFrame, body_fault

Edit = Callable[[Script, int, ScriptFrame], Script | None]


def script_fault(
    family: str, name: str, side: Side, api: str, edit: Edit, captures: tuple[str, ...]
) -> Fault:
    """Return a fault that changes frames around the first suitable message of an API."""

    def inject(script: Script) -> Script | None:
        for at, each in enumerate(script.frames):
            if each.side is side and (not api or each.api == api) and each.answered:
                if not each.api or each.body is None:
                    continue
                try:
                    found = edit(script, at, each)
                except (LookupError, AttributeError, TypeError, ValueError):
                    continue
                if found is not None:
                    return found
        return None

    return Fault(family, name, side, inject, captures)


def framed(
    name: str,
    side: Side,
    change: Callable[[bytes], bytes],
    api: str = "Metadata",
    flexible: bool | None = None,
    captures: tuple[str, ...] = CLIENTS,
    family: str = "framing",
) -> Fault:
    """Return a fault in the bytes of one frame, after its size prefix."""

    def edit(script: Script, at: int, each: ScriptFrame) -> Script | None:
        is_flexible = (
            each.message.schema is not None and each.version in each.message.schema.flexible
        )
        if flexible is not None and is_flexible is not flexible:
            return None
        changed = change(each.frame)
        return script.put(at, replace(each, frame=changed)) if changed != each.frame else None

    return script_fault(family, name, side, api, edit, captures)


def _raw(change: Callable[[bytes], bytes]) -> Edit:
    """Return an edit that also writes the size prefix."""

    def edit(script: Script, at: int, each: ScriptFrame) -> Script:
        data = len(each.frame).to_bytes(4, "big") + each.frame
        return script.put(at, replace(each, frame=change(data), packet=-1))

    return edit


def _last_raw(change: Callable[[bytes], bytes]) -> Edit:
    """Return an edit of the last frame from this side on a connection."""

    def edit(script: Script, at: int, each: ScriptFrame) -> Script | None:
        mine = [n for n, s in enumerate(script.frames) if s.connection == each.connection]
        if sum(s.connection == each.connection for s in script.frames) < 6:
            return None
        last = max(n for n in mine if script.frames[n].side is each.side)
        one = script.frames[last]
        data = len(one.frame).to_bytes(4, "big") + one.frame
        kept = [
            s for n, s in enumerate(script.frames) if n <= last or s.connection != each.connection
        ]
        return script._replace(frames=kept).put(last, replace(one, frame=change(data), packet=-1))

    return edit


def _sent_twice(script: Script, at: int, each: ScriptFrame) -> Script:
    return script.put(at, each, each)


def _omitted(script: Script, at: int, each: ScriptFrame) -> Script | None:
    later = [
        s
        for s in script.frames[at + 1 :]
        if s.connection == each.connection and s.side is each.side
    ]
    return script._replace(frames=script.frames[:at] + script.frames[at + 1 :]) if later else None


def _swapped(script: Script, at: int, each: ScriptFrame) -> Script | None:
    """Swap the responses to two requests in flight together."""
    for other in range(at + 1, min(at + 4, len(script.frames))):
        one = script.frames[other]
        if one.connection == each.connection and one.side is each.side:
            asks = script.partner(one)
            if asks is None or script.index(asks) > at:
                return None
            frames = list(script.frames)
            frames[at], frames[other] = one, each
            return script._replace(frames=frames)
    return None


def _key(key: int, version: int) -> Callable[[bytes], bytes]:
    return lambda f: key.to_bytes(2, "big") + version.to_bytes(2, "big") + f[4:]


def _compact_client_id(frame: bytes) -> bytes:
    length = int.from_bytes(frame[8:10], "big")
    return frame[:8] + bytes([length + 1]) + frame[10:]


B, C = Side.BROKER, Side.CLIENT


def _raw_version(script: Script, at: int, each: ScriptFrame) -> Script | None:
    """Refuse an unknown version of ApiVersions in version 3."""
    if each.version != 3:
        return None
    answer = script.partner(each)
    body = deepcopy(answer.body)
    body.error_code = 35
    other = script.put(at, replace(each, frame=each.frame[:2] + b"\0\x63" + each.frame[4:]))
    return other.put(script.index(answer), answer.with_body(body))


def _same_sequence(script: Script, at: int, each: ScriptFrame) -> Script | None:
    """Retry an appended batch, and answer it with another offset."""
    answer = script.partner(each)
    body = each.body
    records = body.topic_data[0].partition_data[0].records
    if answer is None or int.from_bytes(records[43:51], "big", signed=True) < 0:
        return None
    repeated = deepcopy(answer.body)
    part = repeated.responses[0].partition_responses[0]
    if part.error_code:
        return None
    part.base_offset += 40
    number = (77777).to_bytes(4, "big")
    asks = replace(each, frame=each.frame[:4] + number + each.frame[8:], exchange=-1)
    response = answer.with_body(repeated)
    response = replace(response, frame=number + response.frame[4:], exchange=-1)
    return script.put(script.index(answer), answer, asks, response)


FRAMING = [
    framed("another correlation id", B, lambda f: (99999).to_bytes(4, "big") + f[4:]),
    framed("a byte too many in a response", B, lambda f: f + b"\0"),
    framed("a byte too many in a request", C, lambda f: f + b"\0"),
    framed("a byte too few in a response", B, lambda f: f[:-1]),
    framed("half a response", B, lambda f: f[: len(f) // 2]),
    framed("no tags in the header of a response", B, lambda f: f[:4] + f[5:], flexible=True),
    framed(
        "tags in the header of an old response", B, lambda f: f[:4] + b"\0" + f[4:], flexible=False
    ),
    framed("tags in the header of ApiVersions", B, lambda f: f[:4] + b"\0" + f[4:], "ApiVersions"),
    framed("a compact client id", C, _compact_client_id, flexible=True),
    framed(
        "no tags in the header of a request",
        C,
        lambda f: f[: 10 + f[9]] + f[11 + f[9] :],
        flexible=True,
    ),
    framed("an API that is not offered is answered", C, _key(500, 0)),
    framed("a version that is not offered is answered", C, _key(3, 99)),
    framed("the highest correlation id is taken", B, lambda f: b"\x7f" + f[1:]),
    script_fault("framing", "an answer twice", B, "Metadata", _sent_twice, CLIENTS),
    script_fault("framing", "a request never answered", B, "Metadata", _omitted, CLIENTS),
    script_fault("framing", "answers in another order", B, "", _swapped, (*CLIENTS, *DATA)),
    script_fault(
        "framing",
        "a size of 2^31-1",
        C,
        "Metadata",
        _last_raw(lambda f: b"\x7f\xff\xff\xff" + f[4:]),
        CLIENTS,
    ),
    script_fault(
        "framing",
        "a size of 200 MB",
        C,
        "Metadata",
        _last_raw(lambda f: b"\x0c\0\0\0" + f[4:]),
        CLIENTS,
    ),
    script_fault(
        "framing",
        "a negative size",
        B,
        "Metadata",
        _last_raw(lambda f: b"\xff\xff\xff\xf0" + f[4:]),
        CLIENTS,
    ),
    script_fault(
        "framing",
        "the last response has no end",
        B,
        "Metadata",
        _last_raw(lambda f: f[:-3]),
        CLIENTS,
    ),
    script_fault(
        "framing",
        "a size too small",
        B,
        "Metadata",
        _raw(lambda f: (len(f) - 9).to_bytes(4, "big") + f[4:]),
        CLIENTS,
    ),
    script_fault(
        "framing",
        "text between frames",
        C,
        "Metadata",
        _raw(lambda f: f + b"GET / HTTP/1.1\r\n\r\n"),
        CLIENTS,
    ),
]


VERSIONS = [
    *broker_faults(
        "versions",
        "ApiVersions",
        CLIENTS,
        {
            "ApiVersions itself is not offered": lambda b, s, t: (
                [b.api_keys.remove(k) for k in b.api_keys if k.api_key == 18] != []
            ),
        },
    ),
    *broker_faults(
        "versions",
        "ApiVersions",
        ("kafka4-librdkafka-group", "demo"),
        {"a feature from 0 on in v3": put("supported_features.0.min_version", 0)},
        range(3, 4),
    ),
    framed(
        "an answer in an older version",
        B,
        lambda f: f[:5] + f[5:].replace(b"\0", b"", 1),
        flexible=True,
        family="versions",
    ),
]


ENCODING = [
    *client_faults("encoding", "Heartbeat", GROUPS, {"a null group": put("group_id", None)}),
    framed(
        "a boolean of 2",
        C,
        lambda f: f[:-2] + b"\2\0",
        flexible=True,
        family="encoding",
        captures=("kafka4-java-clients", "demo"),
    ),
    framed(
        "a varint of six bytes",
        B,
        lambda f: f[:9] + b"\xff\xff\xff\xff\xff\1" + f[10:],
        flexible=True,
        family="encoding",
    ),
    framed(
        "a varint longer than needed",
        B,
        lambda f: f[:-1] + b"\x80\0",
        flexible=True,
        family="encoding",
    ),
    framed(
        "a tag twice", B, lambda f: f[:-1] + b"\2\x09\1x\x09\1x", flexible=True, family="encoding"
    ),
    framed(
        "tags in the wrong order",
        B,
        lambda f: f[:-1] + b"\2\x0a\1x\x09\1x",
        flexible=True,
        family="encoding",
    ),
    framed(
        "a tag that says too much",
        B,
        lambda f: f[:-1] + b"\1\x09\x7fx",
        flexible=True,
        family="encoding",
    ),
    framed(
        "a tag section in an old version", C, lambda f: f + b"\0", flexible=False, family="encoding"
    ),
    framed(
        "an array of 2^31-1",
        B,
        lambda f: f[:8] + b"\x7f\xff\xff\xff" + f[12:],
        flexible=False,
        family="encoding",
    ),
    framed(
        "an array of -2",
        B,
        lambda f: f[:8] + b"\xff\xff\xff\xfe" + f[12:],
        flexible=False,
        family="encoding",
    ),
    framed(
        "a length that leaves the message",
        C,
        lambda f: f[:-3] + b"\x7f\0\0",
        flexible=True,
        family="encoding",
    ),
]


def _as(member: str = "", generation: int = 0) -> Any:
    """Let the broker serve a request of another member or generation."""

    def change(body: Any, sent: ScriptFrame, script: Script) -> Any:
        partner = script.partner(sent)
        if partner is None or partner.body.get("error_code") or body.get("group_instance_id"):
            return False
        if member:
            body.member_id = member
        body.generation_id += generation
        return True

    return change


def wrongly_served(
    family: str, name: str, api: str, change: Any, captures: tuple[str, ...]
) -> Fault:
    """Return a fault of a broker that accepts an invalid request."""
    found = body_fault(family, name, Side.CLIENT, api, change, captures)
    return replace(found, side=Side.BROKER)


def _older_epoch(body: Any, sent: ScriptFrame, script: Script) -> Any:
    """Let the broker serve a request with another epoch than the producer's."""
    partner = script.partner(sent)
    if partner is None or partner.body.get("error_code"):
        return False
    body.producer_epoch += 3
    return True


def _unknown_member(body: Any, sent: ScriptFrame, script: Script) -> Any:
    if script.partner(sent).body.get("error_code"):
        return False
    body.producer_id += 1000
    return True


def _without(api: str, *more: str) -> Edit:
    """Omit the exchanges of some APIs on the connection of a message."""

    def edit(script: Script, at: int, each: ScriptFrame) -> Script:
        kept = [
            s for s in script.frames if s.connection != each.connection or s.api not in (api, *more)
        ]
        return script._replace(frames=kept)

    return edit


def _without_all(*apis: str) -> Edit:
    def edit(script: Script, at: int, each: ScriptFrame) -> Script:
        return script._replace(frames=[s for s in script.frames if s.api not in apis])

    return edit


CONDUCT = [
    wrongly_served("groups", "a stranger's heartbeat", "Heartbeat", _as("stranger"), GROUPS),
    wrongly_served("groups", "a stranger's assignment", "SyncGroup", _as("stranger"), GROUPS),
    wrongly_served("groups", "a generation to come", "Heartbeat", _as(generation=5), GROUPS),
    wrongly_served(
        "groups",
        "a stranger's commit",
        "OffsetCommit",
        put("member_id", "stranger", lambda b: b.generation_id_or_member_epoch >= 0),
        ("kafka4-librdkafka-group", "demo", "kafka4-sweep-groups"),
    ),
    wrongly_served("transactions", "EndTxn of another epoch", "EndTxn", _older_epoch, TRANSACTIONS),
    wrongly_served(
        "transactions", "EndTxn of another producer", "EndTxn", _unknown_member, TRANSACTIONS
    ),
    wrongly_served(
        "transactions",
        "AddOffsetsToTxn of another epoch",
        "AddOffsetsToTxn",
        _older_epoch,
        TRANSACTIONS,
    ),
    script_fault(
        "transactions",
        "EndTxn of a transaction that never began",
        B,
        "EndTxn",
        _without_all("AddPartitionsToTxn", "AddOffsetsToTxn", "Produce", "TxnOffsetCommit"),
        ("kafka4-librdkafka-transactions",),
    ),
    script_fault(
        "transactions",
        "partitions that were never added",
        C,
        "EndTxn",
        _without_all("AddPartitionsToTxn"),
        ("kafka4-librdkafka-transactions",),
    ),
    script_fault(
        "transactions",
        "offsets that were never added",
        C,
        "TxnOffsetCommit",
        _without_all("AddOffsetsToTxn"),
        ("kafka4-librdkafka-transactions",),
    ),
    script_fault(
        "sasl",
        "a login without a handshake",
        C,
        "SaslAuthenticate",
        _without("SaslHandshake"),
        SASL,
    ),
    script_fault(
        "sasl", "requests before the login", C, "SaslHandshake", _without("SaslAuthenticate"), SASL
    ),
    script_fault(
        "producers",
        "a batch sent again gets another offset",
        C,
        "Produce",
        _same_sequence,
        IDEMPOTENT,
    ),
    script_fault(
        "versions",
        "ApiVersions refused in version 3",
        C,
        "ApiVersions",
        _raw_version,
        ("kafka4-librdkafka-group", "demo"),
    ),
    *(
        replace(fault, side=Side.CLIENT)
        for fault in broker_faults(
            "quotas",
            "ApiVersions",
            ("kafka4-java-clients",),
            {"a client that does not wait": put("throttle_time_ms", 60000)},
        )
    ),
]

FAULTS = [*FRAMING, *VERSIONS, *ENCODING, *CONDUCT]
