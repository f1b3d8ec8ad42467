"""Colours and signs of rows, by API kind and errors."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from dissector.protocol.apis import api_module
from dissector.view.text.colors import row_color

KINDS = ("data", "metadata", "groups", "transactions", "security", "admin", "cluster", "other")
"""Kinds of APIs, each with a colour."""

_METADATA = ("Metadata", "ApiVersions", "DescribeCluster", "DescribeTopicPartitions")
_KIND_OF_ROOM = {"share_groups": "groups", "raft": "cluster"}

SIGNS = {"error": "!", "damaged": "~", "incomplete": "?"}
"""Signs beside the colours: for 16 colours, none, and eyes that see fewer."""


@cache
def kind_of_api(api: str | None) -> str:
    """Return the kind of an API, by its name."""
    if api in _METADATA:
        return "metadata"
    if api == "SaslToken":
        return "security"
    room = api_module(api or "").rpartition(".")[0]
    kind = _KIND_OF_ROOM.get(room, room)
    return kind if kind in KINDS else "other"


def style_of(row: Mapping[str, Any]) -> str:
    """Return the style of a row: `error`, `damaged`, `incomplete`, or the kind of its API."""
    if row.get("errors") or row.get("error") not in (None, "NONE"):
        return "error"
    if row.get("problems"):
        return "damaged"
    return "incomplete" if row_color(row) else kind_of_api(row.get("api"))


STYLES = (*SIGNS, *KINDS)
"""All styles."""
COLUMNS = ("api", "errors", "problems", "error", "status")
"""Columns that determine the style."""
