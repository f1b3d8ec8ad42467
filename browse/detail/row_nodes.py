"""The node of a row that is no exchange: a connection with its APIs, an event with its evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from browse.detail.exchange_nodes import column_node
from browse.rows.exchange_messages import EVERY_EVIDENCE
from dissector.view.text.escape import escaped
from dissector.view.text.tree_node import TreeNode
from timeline.events.event import Evidence

PACKET_PATHS = ("request_packet", "response_packet")
"""Names in filters of nodes whose value is a packet to go to."""


def connection_node(row: Mapping[str, Any], apis: Mapping[str, int]) -> TreeNode:
    """Return the node of a connection: its columns, and the number of exchanges by API."""
    speaks = row.get("speaks") or "no protocol recognised"
    title = f"{row['connection']}: {row['a']} and {row['b']}, {speaks}"
    return TreeNode("connection", escaped(title), load=partial(_connection_nodes, row, apis))


def event_node(row: Mapping[str, Any]) -> TreeNode:
    """Return the node of an event: its columns, and the exchanges that prove it."""
    title = f"{row['event']} of {row['kind']} {row['subject']}"
    return TreeNode("event", escaped(title), load=partial(_event_nodes, row))


def _connection_nodes(row: Mapping[str, Any], apis: Mapping[str, int]) -> list[TreeNode]:
    total = sum(apis.values())
    counts = TreeNode("exchanges", f"{total:,}")
    if apis:
        counts.load = lambda: [
            TreeNode(api, f"{count:,}", path="api", value=api) for api, count in apis.items()
        ]
        counts.value = {}  # opens like a struct
    return [counts, *_columns(row)]


def _columns(row: Mapping[str, Any]) -> list[TreeNode]:
    """Return the nodes of columns with a value, without hidden ones."""
    return [
        _column(name, value)
        for name, value in row.items()
        if " " not in name and value not in (None, [], "")
    ]


def _column(name: str, value: Any) -> TreeNode:
    node = column_node(name, value)
    if name != "connection":
        node.path = ""  # filters pass exchanges, which lack the columns of connections
    return node


def _event_nodes(row: Mapping[str, Any]) -> list[TreeNode]:
    evidence: Sequence[Evidence] = row.get(EVERY_EVIDENCE) or ()
    text = f"{len(evidence):,} exchange{'s' * (len(evidence) != 1)}, Enter goes to one"
    proofs = TreeNode("evidence", text if evidence else "none")
    if evidence:
        proofs.load = lambda: list(map(_proof_node, evidence))
        proofs.value = {}  # opens like a struct
    return [*_columns(row), proofs]


def _proof_node(proof: Evidence) -> TreeNode:
    """Return the node of an exchange that proves an event; its value is a packet."""
    packets = (proof.request_packet, proof.response_packet)
    kind = next(at for at, packet in enumerate(packets) if packet is not None or at)
    shown = " to ".join(f"{packet:,}" for packet in packets if packet is not None)
    who = f", {proof.client_id}" if proof.client_id else ""
    text = f"{proof.api or 'unknown'}{who}, {proof.client} to {proof.broker}"
    return TreeNode(f"packets {shown}", escaped(text), path=PACKET_PATHS[kind], value=packets[kind])
