from __future__ import annotations

from pathlib import Path

import pytest

from tools.record import manifest, readme

CAPTURES = Path(__file__).parents[3] / "captures"


def test_the_page_is_generated_from_the_captures(tmp_path: Path) -> None:
    entry = manifest.read(CAPTURES)["kafka4-librdkafka-acks"]
    (tmp_path / entry.file).write_bytes((CAPTURES / entry.file).read_bytes())
    manifest.write(tmp_path, {entry.name: entry})
    readme.write(tmp_path)
    text = (tmp_path / "README.md").read_text()
    assert entry.shows in text
    assert f"- `{entry.file}`: ApiVersions 3, Metadata 13, Produce 10" in text
    assert "| 3 | Metadata | 0-13 | 13 | 0-12 |" in text


@pytest.mark.long
def test_the_page_in_the_repository_is_current(tmp_path: Path) -> None:
    for path in CAPTURES.iterdir():
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / "README.md").unlink()
    readme.write(tmp_path)
    assert (tmp_path / "README.md").read_text() == (CAPTURES / "README.md").read_text()


@pytest.mark.parametrize(
    ("numbers", "text"),
    [((), ""), ((3,), "3"), ((0, 1, 2), "0-2"), ((5, 0, 1, 7, 6), "0-1, 5-7")],
)
def test_ranges(numbers: tuple[int, ...], text: str) -> None:
    assert readme.ranges(numbers) == text
