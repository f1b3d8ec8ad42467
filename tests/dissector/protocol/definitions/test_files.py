"""Files of message definitions in JARs and folders."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from dissector.errors import UsageError
from dissector.protocol.definitions.files import MAX_BYTES, definition_files


def jar(path: Path, **entries: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        for name, content in entries.items():
            file.writestr(name, content)
    return path


def names(source: Path) -> list[str]:
    return [each.name.removeprefix(str(source)) for each in definition_files(str(source))]


def test_a_jar(tmp_path: Path) -> None:
    entries = {
        "common/message/B.json": b"2",
        "common/message/A.json": b"1",
        "common/metadata/C.json": b"3",
        "message/D.json": b"4",
        "message/README.md": b"",
        "META-INF/x.json": b"",
    }
    found = definition_files(str(jar(tmp_path / "a.jar", **entries)))
    assert [each.content for each in found] == [b"1", b"2", b"3", b"4"]
    assert found[0].name == f"{tmp_path}/a.jar!common/message/A.json"


def test_a_folder_and_the_jars_in_it(tmp_path: Path) -> None:
    (tmp_path / "common/message").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    for name in ("A.json", "common/message/B.json", "other/C.json", "D.txt"):
        (tmp_path / name).write_text("{}")
    jar(tmp_path / "z.jar", **{"message/E.json": b""})
    assert names(tmp_path) == ["/A.json", "/common/message/B.json", "/z.jar!message/E.json"]


def test_a_file_too_large_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "A.json").write_bytes(b" " * (MAX_BYTES + 1))
    jar(tmp_path / "z.jar", **{"message/E.json": b" " * (MAX_BYTES + 1)})
    assert [each.content for each in definition_files(str(tmp_path))] == [None, None]


def test_devices_and_pipes_in_a_folder_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "A.json").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "B.json")
    (tmp_path / "C.json").mkdir()
    (tmp_path / "z.jar").symlink_to("/dev/zero")
    (tmp_path / "D.json").write_text("{}")
    assert [each.content for each in definition_files(str(tmp_path))] == [None, None, None, b"{}"]
    for source in ("/dev/zero", str(tmp_path / "B.json")):
        with pytest.raises(UsageError, match="neither a JAR nor a folder of definitions"):
            definition_files(source)


def test_sources_without_definitions_are_errors(tmp_path: Path) -> None:
    empty = jar(tmp_path / "empty.jar", **{"a.class": b""})
    text = tmp_path / "a.txt"
    text.write_text("no zip")
    for source, said in (
        (empty, "no message definitions"),
        (text, "neither a JAR nor a folder"),
        (tmp_path / "absent", "No such file"),
    ):
        with pytest.raises(UsageError) as error:
            definition_files(str(source))
        assert said in str(error.value)
        assert str(source) in str(error.value)
        assert "\n" not in str(error.value)
