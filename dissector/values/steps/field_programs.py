"""Programs of steps that find a field of values, and the readers of what they find."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.kernel import Kernel
from dissector.kernel.arrays import Buffers
from dissector.kernel.named_rows import dtype_of
from dissector.values.steps.field_arrays import DEPTH, FoundFields, Frame, ValueRows

_Ints: TypeAlias = NDArray[np.int64]


class FieldColumns(NamedTuple):
    """The field of each row; see `FoundFields`."""

    form: _Ints
    number: _Ints
    size: _Ints
    place: _Ints


class Place(NamedTuple):
    """
    A field that programs find as bytes.

    Attributes:
        read: Returns its value in the types of JSON.
        rest: The names of the path inside the value.
    """

    read: Callable[[bytes], Any]
    rest: Sequence[str]


@dataclass(eq=False, slots=True)
class FieldProgram:
    """
    Finds a field of values that begin with some bytes.

    Attributes:
        lead: These bytes, behind the prefix with the id of the schema.
        places: The fields that are found as bytes.
    """

    lead: bytes
    places: Sequence[Place]
    _kernel: Kernel
    _arrays: NamedTuple

    def find(self, prefix: bytes, start: _Ints, length: _Ints, buffers: Buffers) -> FieldColumns:
        """
        Find the field of some values.

        Args:
            prefix: What values of the program's schema begin with.
            start: Address of each value; negative for null.
            length: Its bytes.
            buffers: The bytes that they refer to.
        """
        lead = np.frombuffer(prefix + self.lead, np.uint8)
        frames = np.zeros(DEPTH, dtype_of(Frame))
        columns = FieldColumns(*(np.zeros(len(start), np.int64) for _ in FieldColumns._fields))
        rows, found = ValueRows._make((start, length)), FoundFields._make(columns)
        self._kernel(rows, buffers, lead, self._arrays, frames, found)
        return columns
