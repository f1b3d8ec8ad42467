"""The sections that `stats` has on demand: by any keys, topics, clients, talkers, sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dissector.errors import UsageError
from dissector.summary.key_columns import KEYS, columns_of_key
from dissector.summary.statistics import Grouping

NAMED: Mapping[str, tuple[str, Grouping]] = {
    "topics": (
        "Users of topics",
        Grouping(("topic", "api", "version", "client", "software"), ("counts", "traffic")),
    ),
    "clients": (
        "Clients",
        Grouping(("client", "software"), ("counts", "connections", "traffic")),
    ),
    "talkers": (
        "Talkers",
        Grouping(("client", "broker"), ("counts", "connections", "traffic", "bytes")),
    ),
    "network": (
        "Network and broker: the parts of the latency",
        Grouping(("client", "broker"), ("counts", "waits")),
    ),
    "broker_times": (
        "Where the time goes in the broker: mean and 95th percentile",
        Grouping(("api",), ("counts", "broker_times")),
    ),
    "sizes": ("Sizes of messages", Grouping(("api",), ("counts", "sizes"))),
}
"""Option -> heading and rows."""

SECTION_NAMES = {"topics": "topic_users", "clients": "client_software"}
"""Names of sections in ndjson that differ from their options."""


def chosen_sections(by: Sequence[str], options: Sequence[str]) -> dict[str, tuple[str, Grouping]]:
    """
    Return heading and rows of the requested sections, by name.

    Args:
        by: Lists of keys, separated by commas; each list is a section.
        options: Names of `NAMED`.

    Raises:
        UsageError: The key does not exist, or is given twice.
    """
    found = {}
    for text in by:
        keys = tuple(word.strip() for word in text.split(","))
        unknown = [key for key in keys if columns_of_key(key) is None]
        if unknown:
            raise UsageError(
                f"--by takes {', '.join(KEYS)}, hook.NAME, an interval such as '10 s', or a field "
                f"of keys or values such as value.user.id, not {unknown[0]!r}"
            )
        if len(set(keys)) < len(keys):
            raise UsageError(f"--by {text} has a key twice")
        if {"topic", "partition"} <= {*keys}:
            raise UsageError("--by partition has the topics, too: leave out topic")
        found[f"by {', '.join(keys)}"] = f"By {', '.join(keys)}", _by(keys)
    for name in options:
        found[SECTION_NAMES.get(name, name)] = NAMED[name]
    return found


def _by(keys: tuple[str, ...]) -> Grouping:
    names = () if "error" in keys else ("error_names",)
    return Grouping(keys, ("counts", "latencies", "traffic", *names))
