"""`--mask`: hidden fields of values, and no bytes of records, in any output."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dissector.errors import UsageError
from dissector.protocol.embedded.secrecy.hidden_records import hide_records
from dissector.public import open_capture
from dissector.values.value_masks import without_field
from tests.dissector.cli.conftest import Run
from tests.dissector.values.value_captures import GUID, write_values

SPELLINGS = (b"Ann", b"416e6e", b"41 6e 6e", b"0x416e6e")
MASK = ("--mask", "value.name", "--mask", "key", "--mask", "header.__value_schema_id")
GUIDS = (GUID.bytes, GUID.hex.encode(), b"01 63 83 6c 98", b"c\\x83")


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_values(tmp_path_factory.mktemp("values") / "values.pcap")


@pytest.fixture(autouse=True)
def shown_again() -> Iterator[None]:
    """Hide nothing in later tests of this process."""
    yield
    hide_records(False)


def test_fields_are_hidden_also_in_items() -> None:
    value = {"a": [{"b": 1, "c": 2}, {"c": 3}, 4], "b": {"c": None}}
    assert without_field(value, ["a", "b"]) == {**value, "a": [{"b": "***", "c": 2}, {"c": 3}, 4]}
    assert without_field(value, ["b", "c"]) == {**value, "b": {"c": "***"}}
    assert without_field(value, ["a", "x"]) is value
    assert without_field(value, []) == "***"


REPORTS = ("ndjson", "sarif", "junit")
OUTPUTS = (
    ("records",),
    ("records", "-T", "ndjson"),
    ("records", "-T", "csv", "--columns", "key,value,value_decoded,value.name,value.id"),
    ("records", "-T", "parquet", "-o", "{}/a.parquet"),
    ("records", "--sort", "value", "-T", "csv"),
    ("dissect", "-V"),
    ("dissect", "-x"),
    ("dissect", "-V", "-x", "--no-values"),
    ("dissect", "-T", "ndjson"),
    ("dissect", "-T", "parquet", "-o", "{}/b.parquet"),
    ("dissect", "-T", "fields", "-e", "request.topic_data.partition_data.records"),
    ("pairs", "--bodies", "-T", "ndjson"),
    ("pairs", "--columns", "request.topic_data.partition_data.records", "-T", "csv"),
    ("streams", "--write", "{}/streams"),
    ("schemas",),
    ("records", "-T", "parquet", "--values-as", "struct", "-o", "{}/topics"),
    ("report", "-o", "{}/a.html"),
    ("timeline",),
    ("timeline", "-T", "ndjson"),
    ("timeline", "--records", "value.name == Ann"),
    ("timeline", "--records", "api == Produce", "-T", "mermaid"),
    ("timeline", "-T", "perfetto", "-o", "{}/a.json"),
    ("findings",),
    ("findings", "-o", "{}/b.html"),
    ("conform", "-o", "{}/c.html"),
    *((name, "-T", form) for name in ("conform", "findings", "advise") for form in REPORTS),
    ("stats", "--by", "value_schema,topic"),
    ("upgrade", "--to", "4.0"),
)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("words", OUTPUTS, ids=[" ".join(each[:4]) for each in OUTPUTS])
def test_no_output_has_a_hidden_field(
    run: Run, capture: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "streams").mkdir()
    shown = [each.format(tmp_path) for each in words]
    done = run(shown[0], capture, *shown[1:], *MASK)
    assert done.status in (0, 1), done.err  # 1: conform finds a warning
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    for output in (done.out.encode(), *files):
        for spelled in SPELLINGS + GUIDS:
            assert spelled not in output
    assert done.out or files


def test_no_table_in_python_has_a_hidden_field(capture: Path) -> None:
    masks = ("value.name", "key", "header.__value_schema_id")
    shown = open_capture(capture, masks=masks, filter="value.id == 5 or key.id == 1")
    tables = [shown.records(), shown.fields(), shown.exchanges(), shown.scan("records").collect()]
    cells = repr([table.rows() for table in tables]).encode()
    for spelled in SPELLINGS + GUIDS:
        assert spelled not in cells
    decoded = tables[0]["value_decoded"].drop_nulls()
    assert '"name": "***"' in decoded[0]
    assert '"id": 5' in decoded[0]
    assert open_capture(capture).records()["value"].bin.contains(b"Ann").any()  # as before
    with pytest.raises(UsageError, match="exclude each other"):
        shown.fields(show_secrets=True)
    with pytest.raises(UsageError, match="writes packets as they are"):
        shown.export(capture.with_suffix(".out"))
    with pytest.raises(UsageError, match=r"write value\.FIELD"):
        open_capture(capture, masks=["card"])


def test_what_is_left(good: Run, run: Run, capture: Path) -> None:
    words = ("-T", "ndjson", "-Y", 'value.name == "Ann" and value.id == 5')
    row = good("records", capture, *words, *MASK).rows[0]
    assert (row["key"], row["value"]) == ("***", "***")
    columns = ("--columns", "key_decoded,value_decoded,value.id")
    row = good("records", capture, *words, *columns, *MASK).rows[0]
    items = [{"sku": "s5"}, {"sku": "s6"}]
    assert row == {
        "key_decoded": "***",
        "value_decoded": {"id": 5, "name": "***", "items": items},
        "value.id": 5,
    }
    text = good("dissect", capture, "-V", "-c", "4", *MASK).out
    assert 'name: "***"' in text
    assert 'sku: "s0"' in text
    for command, said in (
        (("records", "--columns", "len(value)"), "--mask hides it"),
        (("records", "--columns", "key[0:4]"), "--mask hides it"),
        (("export", "-o", "out.pcapng"), "--redact replaces contents"),
        (("records", "--show-secrets"), "exclude each other"),
        (("records", "--mask", "card"), "write value.FIELD"),
        (("records", "--columns", "header.other"), "--mask hides headers"),
    ):
        done = run(command[0], capture, *command[1:], *MASK)
        assert done.status == 2
        assert said in done.err


def test_headers_are_hidden_by_name_or_all(good: Run, capture: Path) -> None:
    words = ("-Y", "value.id == 5 and header.__value_schema_id", "-T", "ndjson", "-c", "1")
    for mask, is_hidden in (("header", True), ("header.__value_schema_id", True), ("key", False)):
        (row,) = good("records", capture, *words, "--mask", mask).rows
        (header,) = row["headers"]
        assert header["key"] == "__value_schema_id"
        assert (header["value"] == "***") == is_hidden
