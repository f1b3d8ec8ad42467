"""The events of scenes, and of captures of the corpus."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests import tcp_captures
from tests.conform.scene import Scene
from tests.corpus import FOLDER
from timeline.events.event import KINDS, Event
from timeline.public import timeline


def events_of(scene: Scene, *kinds: str) -> list[Event]:
    """Write a capture of a scene; return its events."""
    with tempfile.TemporaryDirectory() as folder:
        path = tcp_captures.write(Path(folder) / "scene.pcap", scene.wire.packets)
        return list(timeline(path, kinds=kinds or KINDS))


def corpus_events(name: str, *kinds: str) -> list[Event]:
    """Return the events of a capture of the corpus."""
    return list(timeline(FOLDER / name, kinds=kinds or KINDS))


def brief(events: list[Event]) -> list[tuple[str, str, bool]]:
    """Return event, cause and certainty."""
    return [(each.event, each.cause, each.certain) for each in events]


def only(events: list[Event], event: str) -> list[Event]:
    """Return the events of one name."""
    return [each for each in events if each.event == event]
