"""`captures/README.md`: written from the manifest and what kafkashark reads in the captures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from dissector import all_apis, open_capture
from tools.record import manifest
from tools.record.raw_packets import count

HEAD = """\
# Captures of real Kafka traffic

Recorded on the loopback interface by `python -m tools.record`; this page is written from
`manifest.json`, and from what kafkashark reads in the captures, by
`python -m tools.record --readme`. Payloads and passwords are made up.
To record one again: `python -m tools.record --only NAME`.
[COVERAGE.md](COVERAGE.md) lists the API versions in them.

`*-request-log.log.gz` are request logs of brokers, which are captures too, by
`python -m tools.record.request_logs`; [recordings](recordings) has two of `kafkashark record`, by
`python -m tools.record.recordings`.

[values](values) has captures of serializers in Python, Java and Go with a registry, and in JSON
files what the programs wrote, by `python -m tools.record.values`.
"""

Seen = dict[str, set[int]]
"""Versions by API."""


def write(folder: Path) -> None:
    """Write the README of a folder of captures."""
    entries = manifest.read(folder)
    rows: list[str] = []
    inside: list[str] = []
    everything: Seen = defaultdict(set)
    size_bytes = exchanges = 0
    for name in sorted(entries):
        entry = entries[name]
        path = folder / entry.file
        count_here, seen = _contents(path)
        for api, versions in seen.items():
            everything[api] |= versions
        size_bytes += path.stat().st_size
        exchanges += count_here
        beside = "".join(f", [`{each}`]({each})" for each in entry.beside)
        rows.append(
            f"| [`{entry.file}`]({entry.file}){beside} | {entry.shows} | {entry.client} "
            f"| {entry.broker} | {count(path)} | {count_here} | {path.stat().st_size / 1000:.1f} |"
        )
        inside.append(f"- `{entry.file}`: {', '.join(_spans(seen)) or 'nothing that can be read'}")
    parts = [
        HEAD,
        f"{len(entries)} captures, {exchanges:,} exchanges, {size_bytes / 1000:,.0f} kB.\n",
        "| capture | shows | client | broker | packets | exchanges | kB |",
        "|---|---|---|---|---:|---:|---:|",
        *rows,
        *_table(everything),
        "\n## APIs and versions in each capture\n",
        *inside,
    ]
    (folder / "README.md").write_text("\n".join(parts) + "\n", encoding="utf-8")


def _contents(path: Path) -> tuple[int, Seen]:
    """Count the exchanges of a capture, and collect the APIs and versions with a response."""
    exchanges = open_capture(path, keylogs=manifest.keylogs(path)).exchanges()
    seen: Seen = defaultdict(set)
    columns = ("api", "api_version", "status")
    for api, version, status in exchanges.select(columns).unique().rows():
        if status in ("answered", "no_response") and api is not None:
            seen[api].add(version)
    return len(exchanges), seen


def _table(seen: Seen) -> Iterator[str]:
    apis = list(all_apis())
    exist = {api.name: set(_versions(api.request.versions)) for api in apis}
    known = {name: seen.get(name, set()) & versions for name, versions in exist.items()}
    found, total = (sum(map(len, each.values())) for each in (known, exist))
    yield "\n## APIs and versions on the wire\n"
    yield f"{found} of the {total} versions that exist were asked and answered in these captures.\n"
    yield "| key | API | versions | seen | not seen |"
    yield "|---:|---|---|---|---|"
    for api in apis:
        missing = exist[api.name] - known[api.name]
        cells = (exist[api.name], known[api.name], missing)
        yield f"| {api.key} | {api.name} | " + " | ".join(map(ranges, cells)) + " |"


def _versions(versions: object) -> Iterable[int]:
    return range(versions.low, versions.high + 1)  # type: ignore[attr-defined]


def _spans(seen: Seen) -> list[str]:
    return [f"{api} {ranges(seen[api])}" for api in sorted(seen)]


def ranges(numbers: Iterable[int]) -> str:
    """Write numbers as ranges: 0-3, 5."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)
