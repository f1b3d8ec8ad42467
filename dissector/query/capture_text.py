"""What is known of a capture without reading it, and of its last pass: its repr, and its HTML."""

from __future__ import annotations

from pathlib import Path

from dissector.engine.reading.capture import Capture
from dissector.view.text.notebook import facts_html


def capture_text(capture: Capture, filter_text: str | None) -> str:
    """Return a capture with a filter as one line."""
    chosen = f", filter {filter_text!r}" if filter_text is not None else ""
    counts = "".join(f", {count:,} {name}" for name, count in _counts(capture).items() if count)
    return f"<Capture {', '.join(capture.paths) or 'without packets'}{chosen}{counts}>"


def capture_html(capture: Capture, filter_text: str | None) -> str:
    """Return a capture with a filter as HTML."""
    facts: dict[str, object] = {
        "files": [f"{name}{_size_text(name)}" for name in capture.paths],
        "filter": filter_text,
        "ports": sorted(capture.options.ports),
    }
    return facts_html("Capture", facts | _counts(capture))


def _counts(capture: Capture) -> dict[str, int | None]:
    """Return the totals of the last pass, regardless of the filter; none before the first."""
    if capture.reading is None:
        return {}
    return {
        "packets read": capture.reading.packets,
        "TCP connections": len(capture.reading.streams.connections),
        "of these Kafka": capture.reading.correlator.spoken()["kafka"],
        "of these TLS": len(capture.reading.decryption) or None,
    }


def _size_text(name: str) -> str:
    """Return the size of a file in brackets; empty for other inputs."""
    path = Path(name)
    return f" ({path.stat().st_size:,} bytes)" if path.is_file() else ""
