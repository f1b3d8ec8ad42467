"""
What a redaction does with each declared field, decided once for all messages of a version.

A field whose replacement depends on fields beside it, or on a content of its own, is left to the
codecs with its whole message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.protocol.apis import api_name
from dissector.protocol.field_meanings import meaning_of
from dissector.protocol.field_roles import ValueKind
from dissector.protocol.program import UNKNOWN_TAG, FieldRef, programs
from dissector.protocol.records_fields import may_be_cut
from dissector.redaction.messages.values import ValueRedactor
from dissector.redaction.pseudonyms.distinct_contents import Replace

Actions: TypeAlias = NDArray[np.uint8]

STAYS, BY_CODECS, RECORDS, TOPIC, TOPIC_ID, FIRST_REPLACEMENT = range(6)
"""
Actions: a field stays; makes its message one for the codecs, if it has a content; holds records;
from the last on, it is replaced by one of `FieldPlan.replacements`. TOPIC and TOPIC_ID only mark
fields of `FieldPlan.topics`.
"""

_BESIDE = frozenset(
    (ValueKind.CONFIG, ValueKind.RESOURCE, ValueKind.PRINCIPAL, ValueKind.COORDINATOR_KEY)
)
"""Kinds of texts whose replacement depends on other fields."""

_TOPIC_NAMES = {"name": TOPIC, "topic": TOPIC, "topic_id": TOPIC_ID}
"""Fields that name the topic of the records behind them."""

INT64_BYTES = 8


class FieldPlan:
    """
    The actions of all fields that programs know so far.

    Attributes:
        actions: The action of each field number.
        topics: Of each field number TOPIC or TOPIC_ID if it names the topic of records, else 0.
        is_int64: Whether each field is a number of 8 bytes, and not a content with a length.
        replacements: Functions, by action from FIRST_REPLACEMENT on.
    """

    def __init__(self, values: ValueRedactor) -> None:
        self.actions: Actions = np.zeros(0, np.uint8)
        self.topics: Actions = np.zeros(0, np.uint8)
        self.is_int64: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self.replacements: Sequence[Replace] = []
        self._values = values
        self._texts = {kind: self._text(kind) for kind in (*ValueKind, None)}
        self._of_texts = {kind: FIRST_REPLACEMENT + at for at, kind in enumerate(self._texts)}
        first = FIRST_REPLACEMENT + len(self._texts)
        self._uuid, self._producer_id, self._noise = range(first, first + 3)
        names = values.pseudonyms
        self.replacements = [*self._texts.values(), names.uuid, self._number, names.noise]

    def update(self) -> None:
        """Decide on fields that programs have come to know."""
        refs = programs().field_refs
        new = refs[len(self.actions) :]
        if not new:
            return
        self.actions = np.append(self.actions, np.array([*map(self._action, new)], np.uint8))
        self.topics = np.append(self.topics, np.array([*map(_names_topic, new)], np.uint8))
        numbers = [each is not None and each.declared.type.endswith("int64") for each in new]
        self.is_int64 = np.append(self.is_int64, np.array(numbers, np.bool_))

    @property
    def wanted(self) -> Actions:
        """The fields that a redaction reads, for the tape."""
        wanted: NDArray[np.bool_] = (self.actions != STAYS) | (self.topics > 0)
        wanted[UNKNOWN_TAG] = True
        return wanted.astype(np.uint8)

    def _text(self, kind: ValueKind | None) -> Replace:
        def replaced(data: bytes) -> bytes:
            text = data.decode("utf-8", "surrogateescape")
            return self._values.text(kind, text, {}).encode("utf-8", "surrogateescape")

        return replaced

    def _number(self, data: bytes) -> bytes:
        number = int.from_bytes(data, "big", signed=True)
        new = self._values.pseudonyms.producer_id(number)
        return new.to_bytes(INT64_BYTES, "big", signed=True)

    def _action(self, ref: FieldRef | None) -> int:
        if ref is None:
            return BY_CODECS
        is_item = ref.path.endswith(".[]")
        type_name = ref.declared.type
        if ref.declared.fields or (type_name.startswith("[]") and not is_item):
            return STAYS
        name = "header" if ref.key < 0 else f"{api_name(ref.key)}.{ref.kind}"
        kind = meaning_of(ref.declared, f"{name}.{ref.path.removesuffix('.[]')}").kind
        is_kept = kind is not None and self._values.keeps(kind)
        match type_name.removeprefix("[]"):
            case "string":
                return BY_CODECS if kind in _BESIDE else self._of_texts[kind]
            case "uuid":
                return STAYS if is_kept else self._uuid
            case "int64":
                is_replaced = kind is ValueKind.PRODUCER_ID and not is_kept
                return self._producer_id if is_replaced else STAYS
            case "bytes" | "records":
                is_records = kind is ValueKind.RECORDS and may_be_cut(ref.key, ref.kind) is not None
                if is_records:
                    return RECORDS
                return self._noise if kind is ValueKind.SECRET else BY_CODECS
            case _:
                return STAYS


def _names_topic(ref: FieldRef | None) -> int:
    if ref is None or ref.key < 0 or may_be_cut(ref.key, ref.kind) is None:
        return 0
    return _TOPIC_NAMES.get(ref.declared.name, 0)
