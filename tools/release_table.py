"""
API versions of each Kafka release, as `conform/registry/kafka_release_table.py`.

    python -m tools.release_table broker_api_versions.json            prints it
    python -m tools.release_table broker_api_versions.json --write    puts it there

The file says release -> API key -> [lowest, highest]. The table names a range only where it
changes, so that a person can read what came when.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from dissector.protocol.apis import api_name

TABLE = Path(__file__).parents[1] / "conform" / "registry" / "kafka_release_table.py"

_HEAD = '''"""
Which versions of which APIs the brokers of each Kafka release offer; made by `tools.release_table`.

A range holds from the release that it stands behind until the next one that is named for its API;
`-` means that the API is not offered any more. Of releases that had both, this is what brokers with
ZooKeeper offered.
"""

RELEASES = (
'''


def table(releases: Mapping[str, Mapping[str, list[int]]]) -> str:
    """Return the module."""
    lines = [_HEAD, *(f'    "{name}",\n' for name in releases), ')\n"""From old to new."""\n\n']
    lines.append("RANGES = {\n")
    for key in sorted({int(key) for offered in releases.values() for key in offered}):
        lines.append(f"    # {api_name(key)}\n")
        lines += _entry(key, _changes(releases, str(key)))
    return "".join([*lines, "}\n", '"""API key -> release and range, over and over."""\n'])


def _changes(releases: Mapping[str, Mapping[str, list[int]]], key: str) -> list[str]:
    changes, last = [], "-"
    for release, offered in releases.items():
        bounds = offered.get(key)
        now = "-" if bounds is None else f"{bounds[0]}-{bounds[1]}"
        if now != last:
            changes.append(f"{release} {now}")
        last = now
    return changes


def _entry(key: int, changes: list[str]) -> list[str]:
    line = f'    {key}: "{", ".join(changes)}",\n'
    if len(line) <= 101:
        return [line]
    middle = len(changes) // 2
    first, second = ", ".join(changes[:middle]), ", ".join(changes[middle:])
    return [f'    {key}: "{first}, "\n', f'    "{second}",\n']


def main(arguments: list[str]) -> None:
    source, *options = arguments or [""]
    if not source or options not in ([], ["--write"]):
        raise SystemExit("python -m tools.release_table broker_api_versions.json [--write]")
    text = table(json.loads(Path(source).read_text()))
    if options:
        TABLE.write_text(text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main(sys.argv[1:])
