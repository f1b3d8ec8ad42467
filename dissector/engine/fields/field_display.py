"""How each field of the programs is shown, by its number."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dissector.engine.fields.field_masking import roles_of
from dissector.engine.tables.exchange_table import Ints
from dissector.protocol.program import FieldRef

NUMBER, COUNT, TEXT, BYTES, UUID, FLOAT, OPAQUE, SECRET = range(8)
"""What a field's content is, and so what is shown of it."""

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
    """Return Kafka's word for the type of a field; for an element of an array, that of it."""
    if ref is None:
        return ""
    word = ref.declared.type
    return word.removeprefix("[]") if ref.path.endswith(".[]") else word


def _display_kind(ref: FieldRef | None, show_secrets: bool) -> int:
    if ref is None:
        return OPAQUE
    word = field_type(ref)
    if ref.declared.secret and not show_secrets and not word.startswith("[]"):
        return SECRET
    return COUNT if word.startswith("[]") else _KINDS.get(word, NUMBER)


@dataclass(slots=True)
class FieldDisplay:
    """
    What decides how each field is shown, by its number; programs only ever add fields.

    Attributes:
        show_secrets: Whether secret fields are shown.
        kinds: What the content is.
        sizes: Its bytes where they are always as many; else 0.
        roles: What it is in an entry of a configuration.
    """

    show_secrets: bool
    kinds: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))
    sizes: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    roles: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))

    def update(self, field_refs: list[FieldRef | None]) -> FieldDisplay:
        """Return the looks of what the numbers of fields stand for by now."""
        new = field_refs[len(self.kinds) :]
        kinds = np.array([_display_kind(each, self.show_secrets) for each in new], np.uint8)
        sizes = np.array([_SIZES.get(field_type(each), 0) for each in new], np.int64)
        self.kinds = np.concatenate([self.kinds, kinds])
        self.sizes = np.concatenate([self.sizes, sizes])
        self.roles = np.concatenate([self.roles, roles_of(new)])
        return self
