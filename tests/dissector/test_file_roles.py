"""No output overwrites an input or another output, under whatever names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dissector.errors import UsageError
from dissector.file_roles import READS, WRITES, NamedPath, Reads, Writes, check_outputs


def check(read: object, written: object, role: Writes = WRITES, reads: Reads = READS) -> None:
    check_outputs(
        [NamedPath(str(read), "--in", reads), NamedPath(str(written), "--out", role)],
    )


def refused(read: object, written: object, *roles: Writes) -> str:
    with pytest.raises(UsageError) as caught:
        check(read, written, *roles)
    return str(caught.value)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.pcap"
    path.write_bytes(b"precious")
    return path


def test_one_name_or_two_names_of_a_file(file: Path, tmp_path: Path) -> None:
    assert refused(file, file) == f"{file} is read (--in); --out would overwrite it"
    link, hard = tmp_path / "link", tmp_path / "hard"
    link.symlink_to(file)
    hard.hardlink_to(file)
    for name in (link, hard, f"{tmp_path}/../{tmp_path.name}/a.pcap"):
        said = f"{name} is the same file as {file}, which is read (--in); --out would overwrite it"
        assert refused(file, name) == said
        assert refused(name, file).startswith(f"{file} is the same file as {name}")
    check(file, tmp_path / "other")
    check(tmp_path / "missing", file)


def test_two_outputs_of_one_name(tmp_path: Path) -> None:
    new, same = tmp_path / "new", f"{tmp_path}/./new"
    link = tmp_path / "link"
    link.symlink_to(new)
    for other in (new, same, link):
        with pytest.raises(UsageError, match=r"is written \(-o\); --map would overwrite it"):
            check_outputs(
                [NamedPath(str(new), "-o", WRITES), NamedPath(str(other), "--map", WRITES)]
            )
    check_outputs([NamedPath(str(new), "-o", WRITES), NamedPath(f"{new}2", "--map", WRITES)])


@pytest.mark.parametrize("name", ["-", os.devnull, "/dev/stdout"])
def test_streams_and_devices_may_be_named_twice(name: str) -> None:
    check_outputs([NamedPath(name, each, WRITES) for each in ("-o", "--map")])


def test_a_pipe_may_be_read_and_written(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    check(pipe, pipe)


def test_files_in_folders(file: Path, tmp_path: Path) -> None:
    role = Writes(in_folder=r"\w\.pcap")
    assert "is read (--in)" in refused(file, tmp_path, role)
    check(file, tmp_path, Writes(in_folder=r"\w\.bin"))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "b.pcap").hardlink_to(file)
    assert "is read (--in)" in refused(file, tmp_path / "folder", role)
    with pytest.raises(UsageError, match="is read"):
        check(tmp_path, file, reads=Reads(folder_files=("*.pcap",)))
    check(tmp_path, file, reads=Reads(folder_files=("*.json",)))
    with pytest.raises(UsageError, match="is read"):
        check(tmp_path / "*.pcap", file, reads=Reads(folder_files=("*",)))


def test_names_that_are_no_local_files(file: Path) -> None:
    check(file, "http://collector:4318")
    check("\0", "\0")
