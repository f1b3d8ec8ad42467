"""
Rows of exchanges with the codes of their texts, as the engine has them.

They are made without a text for each row; see `text_codes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from dissector.engine.tables.column_types import Coded, Columns
from dissector.engine.tables.exchange_table import NONE
from dissector.engine.tables.polars_tables import escape_invalid_utf8, frame
from pipeline.storage.text_codes import CODES, code_array


def coded_rows(columns: Columns, schema: pa.Schema, kinds: Mapping[str, Any]) -> pa.RecordBatch:
    """
    Return columns as rows, with codes in place of texts.

    Args:
        columns: At least one; those that lack are null in all rows.
        schema: The columns to return, with texts.
        kinds: Their polars types.
    """
    rows = len(next(iter(columns.values())))
    others = [name for name in schema.names if not isinstance(columns.get(name), Coded | None)]
    table = frame(columns, {name: kinds[name] for name in others}).to_arrow()
    made: dict[str, pa.Array] = {}
    for name, kind in zip(schema.names, schema.types, strict=True):
        match columns.get(name):
            case None:
                made[name] = pa.nulls(rows, CODES if kind == pa.string() else kind)
            case Coded() as column:
                made[name] = _coded(column, kind)
            case _:
                made[name] = table.column(name).combine_chunks().cast(kind)
    return pa.RecordBatch.from_pydict(made)


def _coded(column: Coded, kind: pa.DataType) -> pa.Array:
    """Return a column: texts as codes of distinct ones, other values as such."""
    values = [*map(escape_invalid_utf8, column.values), None]
    indices = np.where(column.codes == NONE, len(values) - 1, column.codes)
    if kind != pa.string():
        return pa.array(values, kind).take(pa.array(indices))
    # Texts that differed may be equal by now, as secrets are masked.
    texts = [text for text in dict.fromkeys(values) if text is not None]
    numbers = {None: NONE, **{text: number for number, text in enumerate(texts)}}
    codes = np.array([numbers[text] for text in values], np.int64)[indices]
    return code_array(codes, codes == NONE, pa.array(texts, pa.string()))
