"""Where a field of a message is in its frame."""

from __future__ import annotations

from dissector.protocol.messages import Message
from dissector.protocol.spans import Span, spans


def span_of(message: Message, path: str) -> tuple[int, int] | None:
    """Return the byte range in the frame of a body field, or of the nearest enclosing field."""
    if message.schema is None or message.api_version is None:
        return None
    found = spans(message.schema, message.api_version, message.frame, message.body_start)
    while (inner := _child_containing(found, path)) is not None:
        found = inner
    return (found.start, found.end) if found.path else None


def _child_containing(span: Span, path: str) -> Span | None:
    for child in span.children:
        if path == child.path or path.startswith((f"{child.path}.", f"{child.path}[")):
            return child
    return None
