"""One exchange: the tree of its fields, and its bytes; each marks its part of the other."""

from browse.detail.detail_events import FieldChosen, FieldColumn
from browse.detail.tree_and_bytes import DetailPanes

__all__ = ["DetailPanes", "FieldChosen", "FieldColumn"]
