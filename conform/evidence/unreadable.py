"""Why the body of a message is not available to rules."""

from __future__ import annotations

from conform.evidence.non_canonical_values import non_canonical_check
from dissector.protocol.messages import Message


def missing_bytes_reason(message: Message) -> str:
    """Return why bytes of a message are missing."""
    if message.broken_off:
        return f"the connection ended within the {message.kind}"
    return f"some bytes of the {message.kind} were not captured"


def unreadable_reason(kind: str, message: Message | None, is_canonical: bool) -> str:
    """Return why the body of a message is not available; empty: it is."""
    if message is None:
        return f"the {kind} is not in the capture"
    if is_canonical:
        return ""
    if message.size > len(message.frame):
        return missing_bytes_reason(message)
    if message.body is None or message.schema is None:
        return f"the {kind} can't be decoded"
    if message.is_assumed:
        return f"the {kind} has an unknown version"
    if message.body_end != message.size:
        return f"the {kind} has bytes after its body"
    if non_canonical_check(message.schema, message.api_version or 0)(message.body):
        return f"the {kind} has non-canonical values"
    return ""
