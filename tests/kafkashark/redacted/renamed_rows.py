"""Rows of commands, and texts in them, with the pseudonyms in place of the names."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

Row = dict[str, Any]

_MIN_NAME = 4
"""Shorter names are words and numbers of any text as well."""

NUMBERS = ("capture", "connection", "request_packet", "response_packet", "packet", "evidence")
"""Columns with numbers of packets and connections: there may be fewer in the copy."""

NAMED = (
    *("client", "broker", "client_id", "topic", "topics", "group", "subject", "text"),
    *(
        "software",
        "member_id",
        "instance_id",
        "coordinator",
        "members",
        "assignment",
        "problems",
        "found",
    ),
)
"""Columns with names; in others the same text is a word."""

CONTENTS = ("key", "value", "headers")
"""Columns that hold contents of records: only whether there is one is the same."""

IDS = ("producer_id", "topic_id", "decoded")
"""Columns of ids and of decoded contents, which the map of names does not list."""


def whole_renamer(names: Mapping[str, str]) -> Callable[[str], str]:
    """Return a function that replaces texts that are a name, or a host with its port."""

    def rename(text: str) -> str:
        host, colon, port = text.replace("[", "").replace("]", "").rpartition(":")
        if text in names or host not in names:
            return names.get(text, text)
        return f"[{names[host]}]:{port}" if ":" in names[host] else f"{names[host]}{colon}{port}"

    return rename


def text_renamer(names: Mapping[str, str]) -> Callable[[str], str]:
    """Return a function that replaces all names in a text."""
    long = [each for each in names if len(each) >= _MIN_NAME and not each.isdigit()]
    any_name = "|".join(map(re.escape, sorted(long, key=len, reverse=True)))
    pattern = re.compile(rf"(?<![A-Za-z0-9])(?:{any_name})(?![A-Za-z0-9])")
    return lambda text: names.get(text) or pattern.sub(lambda found: names[found[0]], text)


def comparable(
    rows: Iterable[Row], rename: Callable[[str], str], left_out: Collection[str]
) -> Counter[str]:
    """
    Return rows in a form that is the same for a capture and its redacted copy.

    Args:
        rows: Rows of a command.
        rename: Replaces names.
        left_out: Columns that are not compared.
    """
    return Counter(
        json.dumps(
            {
                column: _comparable(column, value, rename)
                for column, value in row.items()
                if column not in left_out
            }
        )
        for row in rows
    )


def _comparable(column: str, value: Any, rename: Callable[[str], str]) -> Any:
    if column in CONTENTS:
        return not value
    if column not in NAMED:
        return value
    if isinstance(value, list):
        return [rename(each) for each in value]
    if not isinstance(value, str):
        return value
    if column in _BETWEEN:
        return [rename(part) for part in re.split(_BETWEEN[column], value)]
    # Texts list topics and partitions in the order of their names.
    text = _NUMBERS.sub(r"\1", rename(value))
    return sorted(_PUNCTUATION.sub("", text).split()) if column == "text" else text


_NUMBERS = re.compile(r"\b(connection|producer id|by|for) \d+(?= |,|:|;|$)")
"""Numbers in texts that are others in the copy; the last are client ids of brokers."""
_PUNCTUATION = re.compile("[,:;](?= |$)")

_BETWEEN = {"subject": " at | to ", "software": " "}
"""What is between the names in a column: `client at host to broker`, and a version after a name."""
