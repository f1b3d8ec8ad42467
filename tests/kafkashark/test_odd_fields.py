"""Commands accept any value of a field: undeclared nulls, empty lists, negative numbers."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from dissector.cli import main
from tests.conform.mutations import with_odd_fields
from tests.corpus import FOLDER, fast_and_long

SMALL = sorted(path for path in FOLDER.glob("*.pcap") if path.stat().st_size < 60_000)

COMMANDS = (
    "replay --dry-run --to mock",
    "timeline -T ndjson",
    "groups",
    "upgrade --to 4.4",
    "stats --by topic,error",
    "dissect -V",
    "export --redact -o {out}",
)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("seed", fast_and_long(range(2), range(2, 48)))
def test_commands_accept_any_value_of_a_field(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    random = Random(seed)
    path = tmp_path / "a.pcap"
    path.write_bytes(with_odd_fields(random.choice(SMALL), random))
    for command in COMMANDS:
        name, *words = command.format(out=tmp_path / "out.pcapng").split()
        assert main([name, str(path), *words]) in (0, 1, 2), capsys.readouterr().err
