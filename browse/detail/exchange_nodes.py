"""Top-level nodes of an exchange: columns, request, response."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from dissector.engine.exchanges.exchange import COLUMNS, Exchange
from dissector.errors import bug_location, innermost_error
from dissector.protocol.context import using
from dissector.protocol.messages import Message
from dissector.view.tables.secret_cells import mask_cell, packet_comments
from dissector.view.text.escape import escaped
from dissector.view.text.tree_node import Load, TreeNode
from dissector.view.text.value_text import json_text, time_text

if TYPE_CHECKING:
    from dissector.protocol.definitions.schemas import Schemas
    from dissector.view.text.decoded_nodes import ReadValue

_MISSING = {
    "no_response": "no response is due",
    "unanswered": "no response in the capture",
    "waiting": "no response so far",
}

_SLOW_BYTES = 1 << 16


def exchange_nodes(
    exchange: Exchange, *, show_secrets: bool, read_value: ReadValue | None = None
) -> list[TreeNode]:
    """Return the nodes of an exchange: its columns and messages."""
    nodes = [
        TreeNode(
            "exchange", escaped(_title(exchange)), load=lambda: _columns(exchange, show_secrets)
        )
    ]
    nodes += _comment_nodes(exchange, show_secrets)
    if exchange.request is None:
        nodes.append(TreeNode("request", "not in the capture"))
    nodes += [message_node(exchange, each, show_secrets, read_value) for each in exchange.messages]
    if exchange.response is None:
        nodes.append(TreeNode("response", _MISSING.get(exchange.status, "none")))
    return nodes


def is_slow(exchange: Exchange) -> bool:
    """Return whether decoding the fields of an exchange may take long."""
    return (exchange.request_bytes or 0) + (exchange.response_bytes or 0) > _SLOW_BYTES


def nodes_or_bug(load: Load) -> Sequence[TreeNode]:
    """Return the nodes from a function; an exception becomes a node."""
    try:
        return load()
    except Exception as error:
        what = f"{bug_location(error)}: {innermost_error(error)}"
        return [TreeNode.problem(escaped(f"a bug in kafkashark: {what}"))]


def loaded(exchange: Exchange, nodes: Sequence[TreeNode]) -> Sequence[TreeNode]:
    """Decode headers and bodies of an exchange, and return its nodes."""
    with using(schemas_of(exchange)):
        _load_all(nodes)
    return nodes


def schemas_of(exchange: Exchange | None) -> Schemas | None:
    """Return the message definitions in use for an exchange."""
    messages = [] if exchange is None else exchange.messages
    return next((each.schemas for each in messages), None)


def _load_all(nodes: Sequence[TreeNode]) -> None:
    for node in nodes:
        if node.place is not None and node.load is not None:
            node.load = partial(_same, node.load())


def _same(nodes: Sequence[TreeNode]) -> Sequence[TreeNode]:
    return nodes


def message_node(
    exchange: Exchange,
    message: Message,
    show_secrets: bool,
    read_value: ReadValue | None = None,
) -> TreeNode:
    """Return the node of a message."""
    from dissector.view.text.detail_tree import detail_node  # the first rows need none

    return detail_node(
        message,
        request=exchange.request if message.kind == "response" else None,
        topic_name=exchange.known_topic,
        show_secrets=show_secrets,
        read_value=read_value,
    )


def _title(exchange: Exchange) -> str:
    latency = "" if exchange.latency_ms is None else f", {exchange.latency_ms:.3f} ms"
    return f"{exchange.client} to {exchange.broker}, {exchange.status}{latency}"


def _comment_nodes(exchange: Exchange, show_secrets: bool) -> list[TreeNode]:
    """Return the comments of the packets that completed the messages."""
    return [
        TreeNode("packet comment", escaped(text), path="frame.comment", value=text)
        for text in packet_comments(exchange, ("request", "response"), show_secrets)
    ]


def _columns(exchange: Exchange, show_secrets: bool) -> list[TreeNode]:
    """Return nodes of the columns of `pairs`, with their names in filters."""
    row = exchange.row()
    if not show_secrets:
        row = {name: mask_cell(name, row[name], exchange.known_secrets) for name in COLUMNS}
    return [column_node(name, value) for name, value in row.items()]


def column_node(name: str, value: Any) -> TreeNode:
    """Return the node of a column, with its name in filters."""
    node = TreeNode(name, _text(name, value), path=name, value=value)
    if isinstance(value, list) and value:
        node.load = lambda: [
            TreeNode(f"[{index}]", _text(name, each), path=name, value=each)
            for index, each in enumerate(value)
        ]
    return node


def _text(name: str, value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, list):
        return ", ".join(escaped(str(each)) for each in value) or "none"
    if name.endswith(("time_ns", "end_ns")):
        return f"{value} ({time_text(value)})"
    return escaped(value) if isinstance(value, str) else json_text(value)
