"""Columns of decoded keys and values are those of single records."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from dissector.engine.tables import dictionaries
from dissector.engine.tables.column_types import Coded
from dissector.engine.tables.dictionaries import MAX_DISTINCT
from dissector.query.contents.decoded_column import decode_column
from dissector.query.contents.hooked_records import headers_of
from dissector.values.carriers.envelopes import CLOUD_EVENT_HEADER
from dissector.values.carriers.schema_headers import CONFLUENT_ID
from dissector.values.schemas.schema_store import SchemaStore
from dissector.values.topic_formats import TopicFormats
from dissector.values.value_reader import ValueReader
from tests.dissector.query.contents.value_cases import PREFIX, columns_of, reader_of
from tests.kernel_modes import both

mode = both(dictionaries)

CONTENTS = [b'{"a": 1}', b"text", b"\xff\x00", b"", b"\x04", PREFIX + b"\x04", PREFIX + b"\x05"]
HEADERS = [
    b"trace",
    b"__value_schema_ip",
    CONFLUENT_ID[False].encode(),
    CLOUD_EVENT_HEADER.encode(),
]


@pytest.mark.parametrize("seed", range(20))
def test_columns_equal_single_records(seed: int) -> None:
    random = Random(seed)
    contents = random.choices(CONTENTS, k=40)
    named = {row: random.choice(HEADERS) for row in range(40) if random.random() < 0.5}
    _, data, headers = columns_of(contents, named)
    topics = Coded(np.array(random.choices((-1, 0, 1), k=40), np.int64), ["t", "other"])
    rows = np.array(sorted(random.sample(range(40), 30)), np.int64)
    columns = {"topic": topics, "value": data, "headers": headers}
    reader, alone = reader_of("int"), reader_of("int")

    found = decode_column(reader, columns, "value", rows, is_key=False)

    each_headers = headers_of(headers, rows)
    expected = [
        alone.read(topics.value(row), contents[row], each)
        for row, each in zip(rows.tolist(), each_headers, strict=True)
    ]
    assert [each._replace(origin=None) for each in found.rows] == [
        each._replace(origin=None) for each in expected
    ]
    assert len(found.values) < len(rows)
    for part in ("format", "schema", "problem"):
        _, labels = found.labels(part)
        assert [labels.value(at) for at in range(len(rows))] == [
            getattr(each, part) for each in expected
        ]
        assert list(labels.values) == list(
            dict.fromkeys(text for each in expected if (text := getattr(each, part)) is not None)
        )


def test_more_distinct_values_than_a_table_has_places() -> None:
    contents = [b"%d" % (number % (MAX_DISTINCT + 5)) for number in range(MAX_DISTINCT + 10)]
    topics, data, headers = columns_of(contents)
    columns = {"topic": topics, "value": data, "headers": headers}
    reader = ValueReader(SchemaStore(), TopicFormats())
    found = decode_column(reader, columns, "value", np.arange(len(contents)), is_key=False)
    assert len(found.values) == MAX_DISTINCT + 5
    assert [each.value for each in found.rows] == [int(each) for each in contents]
