"""Texts of values from kernels, as the decoder and `json` write them."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

from dissector.engine.tables.column_types import iter_rows
from dissector.engine.tables.exchange_table import NONE
from dissector.public import open_capture
from dissector.query.contents.decoded_values import COLUMNS, RecordValues
from dissector.query.contents.record_texts import RecordTexts
from dissector.values.steps import program_kernel
from dissector.values.value_reader import ValueReader
from dissector.view.text.escape import safe_json
from tests.dissector.query.contents.value_cases import (
    CASES,
    HOSTILE_SEEDS,
    PREFIX,
    SEEDS,
    columns_of,
    damages,
    is_small,
    reader_of,
    spoiled,
)
from tests.kernel_modes import PYTHON, running


def texts_of(reader: ValueReader, contents: Sequence[bytes]) -> list[str | None]:
    """Return the text of each value; None of those that are left to the reader."""
    texts = RecordTexts(reader, is_key=False, with_format=False)
    start, size, parts, left, *_ = texts.write(*columns_of(contents))
    whole = np.concatenate(parts).tobytes() if parts else b""
    found = [
        None if at == NONE else whole[at : at + length].decode()
        for at, length in zip(start.tolist(), size.tolist(), strict=True)
    ]
    assert [row for row, each in enumerate(found) if each is None] == left.tolist()
    return found


def check(reader: ValueReader, contents: Sequence[bytes]) -> int:
    """Compare the texts with those of the reader, and return how many it did not have to write."""
    count = 0
    for data, found in zip(contents, texts_of(reader, contents), strict=True):
        if found is not None:
            expected = reader.read("t", data).text
            assert found == (expected if expected is None else safe_json(expected)), data.hex()
            count += 1
    return count


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seeds", SEEDS)
def test_texts_of_whole_and_of_damaged_values(case: str, seeds: range) -> None:
    written = total = 0
    for seed in seeds:
        random = Random(seed)
        reader, values = CASES[case](random)
        every = [each for data in filter(is_small, values) for each in damages(data, random)]
        if every:
            check(reader, every)
        written += check(reader, values)
        total += len(values)
    assert written > total // 2


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seeds", HOSTILE_SEEDS)
def test_texts_of_hostile_values(case: str, seeds: range) -> None:
    """Values that were spoiled in many places, or are random, 1,000 for each schema."""
    for seed in seeds:
        random = Random(f"{case} {seed}")
        reader, values = CASES[case](random)
        if small := [each for each in values if len(each) < 300]:
            check(reader, [*values, *(spoiled(random.choice(small), random) for _ in range(1_000))])


@pytest.mark.parametrize("case", CASES)
def test_kernels_as_python(case: str) -> None:
    with running(PYTHON, program_kernel):
        for seed in range(4):
            random = Random(f"{case} {seed}")
            reader, values = CASES[case](random)
            if small := [each for each in values if len(each) < 300]:
                check(reader, [each for data in small for each in damages(data, random)])


EVENT = {
    "type": "record",
    "name": "Event",
    "fields": [
        {"name": "op", "type": "string"},
        {"name": "after", "type": ["null", "long"]},
        {"name": "source", "type": "string"},
    ],
}
PLAIN = {**EVENT, "fields": EVENT["fields"][:2]}


@pytest.mark.parametrize("schema", [EVENT, PLAIN])
@pytest.mark.parametrize("chosen", [COLUMNS, ("value_decoded",), ("key_decoded", "key_schema")])
def test_columns_are_those_of_decoded_values(
    schema: Any, chosen: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of values that decode and not, events and none, and with headers that count and do not."""
    reader = reader_of(schema)
    tail = b"\x02s" if schema is EVENT else b""
    events = [PREFIX + b"\x02c\x02\x0a" + tail, PREFIX + b"\x02?\x00" + tail]
    contents = [*events, events[0][:-1], b"{}", b"\xff", *events, b"\x02c\x00" + tail]
    topics, data, headers = columns_of(contents, HEADERS)
    columns = {"topic": topics, "key": data, "value": data, "headers": headers}
    with open_capture(b"") as capture:
        values = RecordValues(capture, None)
        vars(values)["reader"] = reader
        (found,) = values.parts([columns], chosen)
        with monkeypatch.context() as patch:
            patch.setattr(RecordValues, "_write_parts", lambda *_: False)
            (expected,) = values.parts([columns], chosen)
    assert list(found) == list(expected)
    assert list(iter_rows(found)) == list(iter_rows(expected))
    assert any(row[chosen[0]] for row in iter_rows(found))


HEADERS = {0: b"trace", 5: b"ce_specversion", 7: b"__value_schema_id", 1: b"__other_schema_id"}
"""Keys of headers by row; their values name a schema."""
