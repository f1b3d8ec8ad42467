"""Words for differences, and for counts and names in reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dissector.view.text.escape import escaped
from dissector.view.text.value_text import json_text
from replay.model.row import Row

_MAX_TEXT = 120
_MAX_NAMES = 4
_MAX_APIS = 2


def difference_heading(row: Row) -> str:
    """Return a heading that identifies the request of a difference."""
    if row["client"] is None:
        return f"step {row['step']}: {row['api']}, pass {row['pass']}, beside another part"
    sent = row["version_sent"]
    version = f"v{row['api_version']}" + (f" sent as v{sent}" if sent != row["api_version"] else "")
    who = escaped(row["client_id"] or row["client"])
    in_pass = f", pass {row['pass']}" if row["pass"] else ""
    missing = row["missing_prerequisites"]
    cause = f"; may follow from {first_names(missing)}, left out" if missing else ""
    packet = "" if row["request_packet"] is None else f", packet {row['request_packet']}"
    # A report of an older release, which `--merge` reads, has no files.
    packet += f" ({escaped(file)})" if (file := row.get("request_place")) else ""
    return (
        f"step {row['step']}: {row['api']} {version} of {who}, connection {row['connection']}, "
        f"id {row['correlation_id']}{packet}{in_pass}{cause}"
    )


def value_text(value: Any, max_length: int = _MAX_TEXT) -> str:
    """Return one side of a difference as text; null if absent."""
    text = escaped(value) if isinstance(value, str) else json_text(value)
    return text if len(text) <= max_length else f"{text[: max_length - 1]}…"


def apis_text(counts: Mapping[str, int]) -> str:
    """Return the first APIs with their counts, and the number of further ones."""
    named = [f"{api} {count:,}" for api, count in list(counts.items())[:_MAX_APIS]]
    more = len(counts) - _MAX_APIS
    return ", ".join(named) + (f" and {more:,} more" if more > 0 else "")


def first_names(names: Sequence[str]) -> str:
    """Return the first names, and the number of further ones."""
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return escaped(", ".join(names[:_MAX_NAMES])) + more


def unbalanced_rows(rows: Sequence[Row]) -> list[Row]:
    """Return reasons why logs could not be balanced, each with the first such logs."""
    return [{**row, "logs": first_names(row["logs"])} for row in rows]
