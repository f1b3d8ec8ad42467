"""
Columns of texts as the codes of distinct ones.

Few texts of rows are distinct, so their codes are stored, put in order and written in a fraction of
the time. Parquet has codes too: who reads the tables gets texts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

CODES = pa.dictionary(pa.int32(), pa.string())


def code_array(codes: Any, is_null: Any, texts: pa.Array) -> pa.DictionaryArray:
    """Return a column of codes, null where `is_null` is set; all texts must differ."""
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32), mask=is_null), texts)


def plain_rows(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows with texts in place of codes."""
    for at, kind in enumerate(batch.schema.types):
        if pa.types.is_dictionary(kind):
            name = batch.schema.names[at]
            batch = batch.set_column(at, name, batch.column(at).dictionary_decode())
    return batch


def with_used_texts(rows: pa.Table) -> pa.Table:
    """Return rows without the texts that none of them has: files would show these."""
    for at, kind in enumerate(rows.schema.types):
        if pa.types.is_dictionary(kind):
            column = rows.column(at).combine_chunks()
            codes = column.indices.fill_null(0).to_numpy(zero_copy_only=False)
            is_null = column.is_null().to_numpy(zero_copy_only=False)
            is_used = np.zeros(len(column.dictionary) + 1, np.bool_)
            is_used[codes[~is_null]] = True
            numbers = np.cumsum(is_used) - 1
            texts = column.dictionary.filter(pa.array(is_used[:-1]))
            name = rows.schema.names[at]
            rows = rows.set_column(at, name, code_array(numbers[codes], is_null, texts))
    return rows
