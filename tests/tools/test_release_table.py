"""The table of releases equals the output of its tool."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dissector.protocol.releases.kafka_release_table import RELEASES
from dissector.protocol.releases.kafka_releases import ranges_of
from tools.release_table import TABLE, main, table


def test_ranges_are_listed_where_they_change() -> None:
    text = table({"1.0": {"0": [0, 1]}, "1.1": {"0": [0, 1]}, "2.0": {"0": [0, 2]}, "3.0": {}})
    assert '    0: "1.0 0-1, 2.0 0-2, 3.0 -",\n' in text
    assert "# Produce" in text


def test_the_table_has_its_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = {name: {str(k): list(v) for k, v in ranges_of(name).items()} for name in RELEASES}
    file = tmp_path / "facts.json"
    file.write_text(json.dumps(facts))
    main([str(file)])
    assert capsys.readouterr().out == TABLE.read_text()


def test_without_a_file_usage_is_printed() -> None:
    with pytest.raises(SystemExit):
        main([])
