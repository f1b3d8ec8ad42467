"""Local paths and URIs name the same files."""

from __future__ import annotations

from pathlib import Path

import pytest

from dissector.errors import CaptureError, PipelineError
from pipeline.storage.atomic_files import has_files
from pipeline.storage.filesystems import (
    FileSection,
    expand_paths,
    is_uri,
    locate,
    open_file,
    size_of,
)


def files(folder: Path, *names: str) -> list[str]:
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(name.encode())
    return [str(folder / name) for name in names]


def test_folders_and_patterns_give_each_file_once(tmp_path: Path) -> None:
    a, b, c, _, _ = files(tmp_path, "a.pcap", "b.pcap", "sub/c.pcap", ".hidden", "_tmp/d.pcap")
    assert expand_paths([str(tmp_path)]) == [a, b, c]
    assert expand_paths([str(tmp_path / "*.pcap"), a]) == [a, b]
    assert expand_paths([b, str(tmp_path / "**" / "*.pcap")])[:2] == [
        b,
        str(tmp_path / "_tmp/d.pcap"),
    ]
    assert expand_paths([str(tmp_path / "*.none")]) == []


def test_a_name_may_look_like_a_pattern(tmp_path: Path) -> None:
    (odd,) = files(tmp_path, "a[1].pcap")
    assert expand_paths([odd]) == [odd]


def test_uris_are_read_like_paths(tmp_path: Path) -> None:
    a, b, _ = files(tmp_path, "a.pcap", "sub/b.pcap", ".hidden")
    folder = tmp_path.as_uri()
    assert is_uri(folder)
    assert not is_uri(a)
    assert expand_paths([folder]) == [f"file://{a}", f"file://{b}"]
    assert expand_paths([f"{folder}/a*"]) == [f"file://{a}"]
    assert expand_paths([f"file://{a}"]) == [f"file://{a}"]
    assert size_of(f"file://{a}") == size_of(a) == 6
    with open_file(f"file://{a}") as file:
        file.seek(2)
        assert file.read(3) == b"pca"


ODD = "a b%20#c?d[1]é.pcap"


def test_names_of_files_may_have_any_character(tmp_path: Path) -> None:
    """URIs have it unescaped, as in Spark."""
    [odd] = files(tmp_path, ODD)
    folder = tmp_path.as_uri()
    for path in (folder, f"{folder}/", f"{folder}/a*", f"{folder}/{ODD}"):
        [name] = expand_paths([path])
        assert name == f"{folder}/{ODD}"
        assert size_of(name) == Path(odd).stat().st_size


def test_the_connection_to_a_store_is_kept(tmp_path: Path) -> None:
    """Otherwise its files become unreadable."""
    for path in (f"file://{tmp_path}", "file:///"):
        assert locate(path)[0] is locate(f"file://{tmp_path}/a")[0]
        assert locate(path)[1] == path.removeprefix("file://")


@pytest.mark.parametrize("uri", ["none://a/b", "hdfs://localhost/a"])
def test_an_unreachable_store_is_a_one_line_error(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HADOOP_HOME", "ARROW_LIBHDFS_DIR", "JAVA_HOME"):
        monkeypatch.setenv(name, "/nowhere")
    with pytest.raises(CaptureError) as error:
        expand_paths([uri])
    with pytest.raises(PipelineError) as other:
        has_files(uri)
    for text in (str(error.value), str(other.value)):
        assert text.startswith(f"{uri}: ")
        assert "\n" not in text
        assert "HADOOP_HOME" in text or uri.startswith("none")


@pytest.mark.parametrize("form", ["{}", "file://{}"])
def test_a_missing_file_is_an_error(form: str, tmp_path: Path) -> None:
    name = form.format(tmp_path / "none.pcap")
    for look in (open_file, size_of, lambda name: expand_paths([name])):
        with pytest.raises(CaptureError, match=r"no such file|does not exist") as error:
            look(name)
        assert error.value.file == name


@pytest.mark.parametrize("form", ["{}", "file://{}"])
def test_a_section_is_a_header_and_the_bytes_from_a_position(form: str, tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(bytes(range(100)))
    with FileSection(form.format(path), b"header", 90) as section:
        pieces = [section.read(4) for _ in range(6)]
    assert b"".join(pieces) == b"header" + bytes(range(90, 100))
    assert section.closed
