"""Display format of each field of the programs, by field number."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dissector.engine.fields.field_masking import roles_of
from dissector.engine.tables.exchange_table import Ints
from dissector.protocol.program import FieldRef

NUMBER, COUNT, TEXT, BYTES, UUID, FLOAT, OPAQUE, SECRET = range(8)
"""Kinds of content, which determine the display of a field."""

_KINDS = {
    "string": TEXT,
    "bytes": BYTES,
    "records": OPAQUE,
    "struct": OPAQUE,
    "uuid": UUID,
    "float64": FLOAT,
}
_SIZES = {"bool": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "uint16": 2, "uint32": 4}


def field_type(ref: FieldRef | None) -> str:
    """Return Kafka's type name of a field; for an array element, the type of the element."""
    if ref is None:
        return ""
    type_name = ref.declared.type
    return type_name.removeprefix("[]") if ref.path.endswith(".[]") else type_name


def _display_kind(ref: FieldRef | None, show_secrets: bool) -> int:
    if ref is None:
        return OPAQUE
    type_name = field_type(ref)
    if ref.declared.secret and not show_secrets and not type_name.startswith("[]"):
        return SECRET
    return COUNT if type_name.startswith("[]") else _KINDS.get(type_name, NUMBER)


@dataclass(slots=True)
class FieldDisplay:
    """
    Display formats by field number; programs only ever add fields.

    Attributes:
        show_secrets: Whether secret fields are shown.
        kinds: Kind of the content.
        sizes: Bytes of content of fixed size; else 0.
        roles: Role of the field in a configuration entry; see `roles_of`.
    """

    show_secrets: bool
    kinds: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))
    sizes: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    roles: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))

    def update(self, field_refs: list[FieldRef | None]) -> FieldDisplay:
        """Add the formats of fields that were registered since the last call, and return itself."""
        new = field_refs[len(self.kinds) :]
        kinds = np.array([_display_kind(each, self.show_secrets) for each in new], np.uint8)
        sizes = np.array([_SIZES.get(field_type(each), 0) for each in new], np.int64)
        self.kinds = np.concatenate([self.kinds, kinds])
        self.sizes = np.concatenate([self.sizes, sizes])
        self.roles = np.concatenate([self.roles, roles_of(new)])
        return self
