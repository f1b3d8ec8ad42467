"""Patterns of ignored differences."""

from __future__ import annotations

from pathlib import Path

import pytest

from dissector.errors import UsageError
from replay.compare.ignore_rules import Noise, field_pattern

PATH = "responses[a.b].partitions[0].log_start_offset"


@pytest.mark.parametrize(
    "pattern",
    [
        "Fetch.responses[*].partitions[*].log_start_offset",
        "fetch.responses[a.b].partitions[0].log_start_offset",
        "Fetch.responses[*].partitions",
        "Fetch.responses",
        "Fetch",
        "*.responses[*].partitions[*].*",
        "*.responses[*].partitions[*].log_*",
    ],
)
def test_covers(pattern: str) -> None:
    noise = Noise([pattern])
    assert noise.covers("Fetch", PATH)
    assert noise.ignored == {pattern: 1}


@pytest.mark.parametrize(
    "pattern",
    [
        "Produce.responses",
        "Fetch.response",
        "Fetch.responses[*].partitions[1]",
        "Fetch.responses[b].partitions[0].log_start_offset",
        "Fetch.responses[*].partitions[*].log_start",
        "Fetch.*.log_start_offset",
        "*.partitions",
    ],
)
def test_does_not_cover(pattern: str) -> None:
    noise = Noise([pattern])
    assert not noise.covers("Fetch", PATH)
    assert not noise.ignored


def test_a_generalised_path_covers_its_original() -> None:
    assert field_pattern("Fetch", PATH) == "Fetch.responses[*].partitions[*].log_start_offset"
    assert Noise([field_pattern("Fetch", PATH)]).covers("Fetch", PATH)
    assert field_pattern("Fetch", "") == "Fetch: no answer"


@pytest.mark.parametrize("pattern", ["Fitch.responses", "responses[*].x", "", "."])
def test_a_pattern_without_an_api_is_an_error(pattern: str) -> None:
    with pytest.raises(UsageError, match="names no API"):
        Noise([pattern])


def test_a_file_of_patterns(tmp_path: Path) -> None:
    file = tmp_path / "noise"
    file.write_text("# learned\nFetch.responses  # why\n\nMetadata\n")
    assert Noise.read(file, ["Produce"]).patterns == ("Fetch.responses", "Metadata", "Produce")
    with pytest.raises(UsageError, match="cannot be read"):
        Noise.read(tmp_path / "none")
