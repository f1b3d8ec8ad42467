"""The forms of a row on the clipboard."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import Any

from dissector.engine.exchanges.exchange import Exchange
from dissector.protocol.embedded.masking import secret_ranges
from dissector.protocol.messages import Message
from dissector.view.json.body import body_json
from dissector.view.text.detail_tree import detail_tree
from dissector.view.text.hexdump import hexdump
from dissector.view.text.value_text import json_text, record_json

CopyForms = dict[str, Callable[[], str]]
"""Titles, and functions that return the texts."""


def copy_forms(
    row: Mapping[str, Any],
    text: str,
    exchange: Exchange | None,
    paths: list[str],
    show_secrets: bool,
) -> CopyForms:
    """
    Return the forms of a row.

    Args:
        row: The row.
        text: Text of the row in the list.
        exchange: Exchange of the row; None without one.
        paths: Files of the capture.
        show_secrets: Show secrets instead of masks.
    """
    public = {name: value for name, value in row.items() if " " not in name}
    forms: CopyForms = {
        "the row as text": lambda: text,
        "the row as JSON": lambda: json_text(_row_json(public)),
    }
    if exchange is not None:
        forms |= {
            "all fields as text": lambda: _tree(exchange, show_secrets),
            "both bodies as JSON": lambda: _bodies(exchange, show_secrets),
            "the bytes as hex": lambda: _hex(exchange, show_secrets),
            "a filter for it": lambda: filter_of(exchange),
            "a command line for it": lambda: command_of(exchange, paths),
        }
    return forms


def _row_json(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a row as `-T ndjson` prints it."""
    return record_json(row) if "headers" in row else row


def filter_of(exchange: Exchange) -> str:
    """Return a filter that passes this exchange only."""
    side = "request" if exchange.request_packet is not None else "response"
    packet = exchange.request_packet if side == "request" else exchange.response_packet
    text = f"connection == {exchange.connection} and {side}_packet == {packet}"
    if exchange.correlation_id is not None:
        text += f" and correlation_id == {exchange.correlation_id}"
    return text


def command_of(exchange: Exchange, paths: list[str]) -> str:
    """Return a command that prints the exchange with all fields."""
    return shlex.join(["kafkashark", "dissect", *paths, "-V", "-Y", filter_of(exchange)])


def _tree(exchange: Exchange, show_secrets: bool) -> str:
    lines = [
        line
        for message in exchange.messages
        for line in detail_tree(
            message,
            request=_request_of(exchange, message),
            topic_name=exchange.known_topic,
            show_secrets=show_secrets,
        )
    ]
    return "\n".join(lines)


def _bodies(exchange: Exchange, show_secrets: bool) -> str:
    bodies = {
        message.kind: body_json(message, _request_of(exchange, message), show_secrets=show_secrets)
        for message in exchange.messages
    }
    return json_text(bodies)


def _hex(exchange: Exchange, show_secrets: bool) -> str:
    lines: list[str] = []
    for message in exchange.messages:
        masked: list[tuple[int, int]] = []
        if not show_secrets:
            whole = [(0, len(message.frame))]
            request = _request_of(exchange, message)
            masked = whole if exchange.is_token else secret_ranges(message, request)
        lines += [message.kind, *hexdump(message.frame, masked=masked)]
    return "\n".join(lines)


def _request_of(exchange: Exchange, message: Message) -> Message | None:
    return exchange.request if message.kind == "response" else None
