"""`captures/manifest.json`: what each capture shows and how it was made; the README made of it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from tools.record.packets import count

HEAD = """\
# Captures of real Kafka traffic

Recorded on the loopback interface by `python -m tools.record`; this page is written from
`manifest.json` by `python -m tools.record --readme`. Payloads and passwords are made up.

"""


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
    """Files that belong to it, such as a TLS key log."""


def read(folder: Path) -> dict[str, Entry]:
    """Read the manifest by name; empty where there is none yet."""
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


def write_readme(folder: Path) -> None:
    """Write the README of the captures from the manifest and the captures themselves."""
    entries = read(folder)
    lines = [
        "| capture | shows | client | broker | packets | kB |",
        "|---|---|---|---|---:|---:|",
    ]
    total = 0
    for name in sorted(entries):
        entry = entries[name]
        size = (folder / entry.file).stat().st_size
        total += size
        beside = "".join(f", [`{each}`]({each})" for each in entry.beside)
        lines.append(
            f"| [`{entry.file}`]({entry.file}){beside} | {entry.shows} | {entry.client} "
            f"| {entry.broker} | {count(folder / entry.file)} | {size / 1000:.1f} |"
        )
    lines += ["", f"{len(entries)} captures, {total / 1000:.0f} kB. To record one again:", ""]
    lines += ["    python -m tools.record --only NAME", ""]
    (folder / "README.md").write_text(HEAD + "\n".join(lines), encoding="utf-8")
