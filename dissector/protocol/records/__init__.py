"""The contents of `records` fields: record batches, message sets, control records, compression."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dissector.protocol.records.batch import RecordBatch
    from dissector.protocol.records.compose import new_batch, new_message_set
    from dissector.protocol.records.control import CONTROL_TYPES, control_type
    from dissector.protocol.records.field import Batch, UnreadBatch, build_records, parse_records
    from dissector.protocol.records.limits import DEFAULT, Limits
    from dissector.protocol.records.message_set import LegacyBatch, LegacyRecord
    from dissector.protocol.records.record import Record
    from dissector.protocol.records.rewrite import rewrite_batch
    from dissector.protocol.records.rows import Row, iter_records

__all__ = [
    "CONTROL_TYPES",
    "DEFAULT",
    "Batch",
    "LegacyBatch",
    "LegacyRecord",
    "Limits",
    "Record",
    "RecordBatch",
    "Row",
    "UnreadBatch",
    "build_records",
    "control_type",
    "iter_records",
    "new_batch",
    "new_message_set",
    "parse_records",
    "rewrite_batch",
]

_FILES = (
    *("batch", "compose", "control", "field", "limits"),
    *("message_set", "record", "rewrite", "rows"),
)


def __getattr__(name: str) -> Any:
    """Load the public names at first use: the column code needs only `layout`."""
    if name in __all__:
        for file in _FILES:
            module = import_module(f"{__name__}.{file}")
            if hasattr(module, name):
                return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
