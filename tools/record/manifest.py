"""`captures/manifest.json`: the content and origin of each capture."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Entry:
    """One capture."""

    name: str
    file: str
    shows: str
    client: str
    broker: str
    command: str
    beside: tuple[str, ...] = ()
    """Files that belong to the capture, such as a TLS key log."""


def keylogs(capture: Path) -> tuple[Path, ...]:
    """Return the TLS key logs of a capture: none, or the file of the same name beside it."""
    path = capture.with_name(f"{capture.name.split('.pcap')[0]}.keylog")
    return (path,) if path.exists() else ()


def read(folder: Path) -> dict[str, Entry]:
    """Read the manifest's entries by name; empty if the file does not exist."""
    path = folder / "manifest.json"
    if not path.exists():
        return {}
    rows = json.loads(path.read_text(encoding="utf-8"))
    return {row["name"]: Entry(**{**row, "beside": tuple(row["beside"])}) for row in rows}


def write(folder: Path, entries: dict[str, Entry]) -> None:
    """Write the manifest, ordered by name."""
    rows = [asdict(entries[name]) for name in sorted(entries)]
    text = json.dumps(rows, indent=2, ensure_ascii=False) + "\n"
    (folder / "manifest.json").write_text(text, encoding="utf-8")
