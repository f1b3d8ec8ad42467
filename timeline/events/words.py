"""Phrases in event texts: durations, members, partitions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from dissector.engine.reading.packet_files import ranges as ranges
from dissector.protocol.embedded.secrecy.credentials import mask_texts

if TYPE_CHECKING:
    from dissector.engine.reading.capture import Capture
    from dissector.protocol.login_secrets import Known

_UUID = re.compile(r"([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)

_MAX_MASKED = 4096
"""Texts that are remembered with what is shown of them: names of clients recur."""

MAX_LISTED = 8
"""Maximum number of items in lists; the others are counted."""


def duration(ns: int) -> str:
    """Return a duration: `0.4 ms`, `310 ms`, `2.95 s`, `4 min 10 s`."""
    ns = max(0, ns)  # captured times may decrease slightly
    if ns < 10_000_000:
        return f"{ns / 1e6:.1f} ms"
    if ns < 1_000_000_000:
        return f"{ns / 1e6:.0f} ms"
    if ns < 60_000_000_000:
        return f"{ns / 1e9:.2f} s"
    minutes, seconds = divmod(ns // 10**9, 60)
    return f"{minutes} min {seconds} s"


def client_name(client_id: str | None, address: str) -> str:
    """Return the name of a client without its port, which differs between its connections."""
    host = address.rpartition(":")[0]
    return f"{client_id} at {host}" if client_id else host


Mask = Callable[[str], str]
"""Returns a text, or a mask if it holds a credential."""


def mask_of(capture: Capture, show_secrets: bool) -> Mask:
    """Return what masks texts with credentials, such as one in a URL or of a login."""
    masked: dict[str, str] = {}
    known: Known | None = None

    def mask(text: str) -> str:
        nonlocal known
        if capture.logins.all is not known or len(masked) >= _MAX_MASKED:
            known = capture.logins.all
            masked.clear()
        shown = masked.get(text)
        if shown is None:
            shown = masked[text] = mask_texts(text, known)
        return shown

    return str if show_secrets else mask


def member_name(member_id: str, instance_id: str | None = None) -> str:
    """Return a member id with UUIDs cut to 8 digits; for static members the instance id."""
    return instance_id or _UUID.sub(r"\1", member_id) or "a new member"


def listed(items: Iterable[str]) -> str:
    """Return items separated by commas; long lists are cut, with the number of omitted items."""
    found = list(items)
    if len(found) <= MAX_LISTED:
        return ", ".join(found)
    return f"{', '.join(found[:MAX_LISTED])} and {len(found) - MAX_LISTED} more"


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun: `1 member`, `2 members`."""
    return f"{count} {noun if count == 1 else plural or f'{noun}s'}"


def partitions_text(partitions: Mapping[str, Iterable[int]]) -> str:
    """Return partitions by topic: `orders 0-2, payments 0`."""
    texts = [f"{topic} {ranges(numbers)}" for topic, numbers in sorted(partitions.items())]
    return listed(each for each in texts if not each.endswith(" ")) or "nothing"
