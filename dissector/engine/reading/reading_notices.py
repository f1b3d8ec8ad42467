"""What a user must know of a capture that was read: lines for stderr."""

from __future__ import annotations

from collections.abc import Iterator

from dissector.capture.packets.link_layers import link_name
from dissector.engine.reading.reader import Reading
from dissector.engine.reading.spoken import mismatch_notices


def reading_notices(reading: Reading) -> Iterator[str]:
    """Yield what was not read, and which clients spoke another protocol than their server."""
    for link, count in sorted(reading.source.unread_links.items()):
        yield unread_link(link, count)
    yield from mismatch_notices(reading)


def unread_link(link: int, count: int) -> str:
    """Return a line about the packets of a link type that is not read."""
    return f"{count:,} packet{'s' * (count != 1)} of link type {link_name(link)}, which is not read"
