"""Files are written completely or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from dissector.errors import PipelineError
from pipeline.storage.atomic_files import atomic_write, has_files, join_path, remove_folder


@pytest.fixture(params=["path", "uri"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path) if request.param == "path" else tmp_path.as_uri()


def test_a_file_replaces_its_predecessor_when_complete(folder: str, tmp_path: Path) -> None:
    path = join_path(folder, "a", "b.bin")
    for content in (b"first", b"second"):
        with atomic_write(path) as file:
            file.write(content)
            before = tmp_path / "a/b.bin"
            assert not before.exists() or before.read_bytes() == b"first"
        assert [each.name for each in (tmp_path / "a").iterdir()] == ["b.bin"]
        assert (tmp_path / "a/b.bin").read_bytes() == content


def test_a_failed_write_leaves_no_file(folder: str, tmp_path: Path) -> None:
    def fail() -> None:
        with atomic_write(join_path(folder, "b.bin")) as file:
            file.write(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not list(tmp_path.iterdir())


def test_an_unwritable_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(PipelineError, match=r"file/b\.bin: "),
        atomic_write(f"{tmp_path}/file/b.bin"),
    ):
        pass


def test_folders_are_found_and_deleted(folder: str, tmp_path: Path) -> None:
    assert not has_files(join_path(folder, "none"))
    assert not has_files(folder)
    remove_folder(join_path(folder, "none"))
    with atomic_write(join_path(folder, "a", "b")):
        pass
    assert has_files(folder)
    remove_folder(join_path(folder, "a"))
    assert not has_files(folder)
    assert tmp_path.exists()


def test_only_the_owner_can_read_a_private_file(tmp_path: Path) -> None:
    for private in (False, True):
        with atomic_write(str(tmp_path / "a"), private=private) as file:
            file.write(b"secret")
        assert bool((tmp_path / "a").stat().st_mode & 0o077) is not private
