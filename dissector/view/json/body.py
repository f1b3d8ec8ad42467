"""Decoded bodies as JSON: records as batches, secrets masked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from uuid import UUID

from dissector.protocol.embedded.masking import (
    is_secret_record,
    is_secret_topic,
    mask_body,
    mask_record,
)
from dissector.protocol.embedded.own_topics import decode_record
from dissector.protocol.embedded.sasl_tokens import MASK
from dissector.protocol.embedded.secrecy.hidden_records import (
    header_is_hidden,
    hides_headers,
    records_are_hidden,
)
from dissector.protocol.embedded.secrecy.setting_records import is_settings_topic, masked_settings
from dissector.protocol.facts import CLUSTER_METADATA, CLUSTER_METADATA_ID
from dissector.protocol.login_secrets import knowing
from dissector.protocol.messages import Message
from dissector.protocol.records_fields import RecordsField, records_fields
from dissector.view.text.escape import safe_json
from dissector.view.text.value_text import jsonable


def body_json(
    message: Message | None, request: Message | None = None, *, show_secrets: bool = False
) -> Any:
    """
    Return a decoded body in the types of JSON; None without a body.

    Args:
        message: The message.
        request: The request of a response; it determines the content of an Envelope.
        show_secrets: Whether passwords, tokens and salts are shown.
    """
    if message is None or message.body is None or message.schema is None:
        return None
    with knowing(message.known_secrets):
        return _body_json(message, request, show_secrets)


def _body_json(message: Message, request: Message | None, show_secrets: bool) -> Any:
    out = jsonable(message.body if show_secrets else mask_body(message, request))
    for field in records_fields(message):
        out[field.topics][field.topic_index][field.partitions][field.partition_index]["records"] = (
            _batches_json(field, message.topic_name, show_secrets)
        )
    return out


def body_text(
    message: Message | None, request: Message | None = None, *, show_secrets: bool = False
) -> str | None:
    """Return `body_json` as one line of JSON; None without a body."""
    value = body_json(message, request, show_secrets=show_secrets)
    if value is None:
        return None
    return safe_json(json.dumps(value, ensure_ascii=False, allow_nan=False))


def _batches_json(
    field: RecordsField, topic_name: Callable[[UUID], str | None], show_secrets: bool
) -> list[Any]:
    """Return the batches of a `records` field; secret records are masked."""
    batches = [batch.to_dict() for batch in field.batches]
    topic = CLUSTER_METADATA if field.topic_id == CLUSTER_METADATA_ID else field.topic
    if topic is None and field.topic_id is not None:
        topic = topic_name(field.topic_id)
    if not show_secrets and is_secret_topic(topic):
        for batch in batches:
            if "bytes" in batch:
                batch["bytes"] = MASK
            for record in batch["records"]:
                mask_record_row(topic or "", record)
                if records_are_hidden():
                    hide_record(record)
    return [jsonable(batch) for batch in batches]


def mask_record_row(topic: str, record: dict[str, Any]) -> None:
    """Mask the value of a record that holds credentials, or the secrets in it, in place."""
    if is_settings_topic(topic):
        record["value"] = masked_settings(record["key"], record["value"])
        return
    decoded = decode_record(topic, record["key"], record["value"])
    if decoded is not None and is_secret_record(topic, decoded):
        record["value"] = MASK


def hide_record(record: dict[str, Any]) -> None:
    """Hide the key, the value and hidden headers of a record, in place."""
    for name in ("key", "value"):
        if record[name] is not None:
            record[name] = MASK
    if hides_headers():
        record["headers"] = without_hidden(record.get("headers") or ())


def without_hidden(headers: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the headers of a record with hidden values masked."""
    return [
        {**each, "value": MASK.encode()} if header_is_hidden(each["key"]) else {**each}
        for each in headers
    ]


def decoded_record(
    topic: str | None, key: bytes | None, value: bytes | None, show_secrets: bool
) -> dict[str, Any] | None:
    """
    Return a decoded record of Kafka's own topics in the types of JSON; None for other topics.

    `kind` is its name (`OffsetCommit`), `key` and `value` are its decoded halves, `problems` the
    problems of decoding.
    """
    decoded = decode_record(topic, key, value) if topic else None
    if decoded is None or topic is None:
        return None
    shown = decoded if show_secrets else mask_record(topic, decoded)
    return {
        "kind": shown.name,
        "key": shown.key and jsonable(shown.key.value),
        "value": shown.value and jsonable(shown.value.value),
        "problems": [str(problem) for problem in shown.problems],
    }
