"""Destinations of output, and files protected from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dissector.cli.declared.row_options import ROW_FORMATS
from tests.dissector.cli.conftest import Run

READERS = ("dissect", "pairs", "streams", "records", "stats")


@pytest.mark.parametrize("form", ROW_FORMATS)
def test_output_to_a_file(good: Run, shop: Path, tmp_path: Path, form: str) -> None:
    file = tmp_path / "out"
    file.write_text("old, and longer than what comes" * 1000)
    assert good("pairs", shop, "-T", form, "-o", file) == (0, "", "")
    if form != "parquet":
        text = file.read_bytes().decode()
        assert (
            text
            == good("pairs", shop, "-T", form).out
            == good("pairs", shop, "-T", form, "-o", "-").out
        )


@pytest.mark.parametrize("form", ROW_FORMATS)
def test_bad_input_keeps_the_output_file(run: Run, tmp_path: Path, form: str) -> None:
    file = tmp_path / "precious"
    file.write_text("from yesterday")
    assert run("pairs", tmp_path / "missing", "-T", form, "-o", file).status == 2
    assert file.read_text() == "from yesterday"
    assert run("pairs", tmp_path / "missing", "-T", form, "-o", tmp_path / "new").status == 2
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("command", READERS)
def test_a_capture_is_not_overwritten(run: Run, shop: Path, tmp_path: Path, command: str) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(shop.read_bytes())
    link = tmp_path / "link"
    link.symlink_to(path)
    done = run(command, path, "-o", link)
    assert done == (
        2,
        "",
        f"kafkashark: {link} is the same file as {path}, which is read (CAPTURE); "
        "-o would overwrite it\n",
    )
    assert path.read_bytes() == shop.read_bytes()


def test_imported_schemas_are_not_overwritten(run: Run, shop: Path, tmp_path: Path) -> None:
    inner = tmp_path / "parts" / "user.proto"
    inner.parent.mkdir()
    inner.write_text('syntax = "proto3"; message User { int32 id = 1; }')
    order = tmp_path / "order.proto"
    order.write_text('import "parts/user.proto"; message Order { User user = 1; }')
    for words in (("--values", order), ("--value-format", f"orders=protobuf:{order}")):
        done = run("records", shop, *words, "-o", inner)
        assert done.status == 2
        assert f"{inner} is read ({words[0]}); -o would overwrite it" in done.err
        assert inner.read_text().startswith("syntax")


@pytest.mark.parametrize("form", ROW_FORMATS)
def test_an_unwritable_output_file(run: Run, shop: Path, tmp_path: Path, form: str) -> None:
    file = tmp_path / "no" / "such" / "folder"
    done = run("pairs", shop, "-T", form, "-o", file)
    assert done == (2, "", f"kafkashark: {file}: No such file or directory\n")
    done = run("pairs", shop, "-T", form, "-o", tmp_path)
    assert done == (2, "", f"kafkashark: {tmp_path}: Is a directory\n")


def test_an_unwritable_folder_of_streams(run: Run, shop: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    done = run("streams", shop, "--write", file)
    assert done == (2, "", f"kafkashark: {file}: File exists\n")
