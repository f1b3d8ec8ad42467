"""Details of one exchange: a tree of fields and the bytes, linked by marks."""

from browse.detail.detail_events import (
    FieldChosen,
    FieldColumn,
    FieldMarked,
    FieldMenu,
    PacketChosen,
)
from browse.detail.tree_and_bytes import DetailPanes

__all__ = ["DetailPanes", "FieldChosen", "FieldColumn", "FieldMarked", "FieldMenu", "PacketChosen"]
