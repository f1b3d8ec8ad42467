"""A schema, where it comes from, and its decoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypeAlias

from dissector.values.avro.avro_schema import AvroSchema
from dissector.values.carriers.carried_schema import MessageChoice, MessagePlace, NamedMessage
from dissector.values.json_places import json_leaves, located_json, words_of_schema
from dissector.values.json_values import json_value
from dissector.values.located_value import LocatedValue
from dissector.values.protobuf.proto_declarations import ProtoMessage
from dissector.values.protobuf.proto_schema import (
    ProtoSchema,
    read_index,
    read_indexes,
    read_ref,
)
from dissector.values.steps.avro_programs import avro_program, avro_text_program
from dissector.values.steps.proto_programs import proto_program, proto_text_program
from dissector.values.steps.step_programs import FieldProgram, TextProgram
from dissector.values.value_leaves import Leaves
from dissector.values.value_limits import SchemaProblem

AVRO, JSON_SCHEMA, PROTOBUF = "avro", "json-schema", "protobuf"


Like: TypeAlias = tuple[bytes, int, MessageChoice]
"""A value that decoded: its bytes, where it begins, and its message."""


class Decoder(Protocol):
    """Reads values of one schema."""

    def value(
        self,
        data: bytes,
        at: int,
        message: MessageChoice = MessagePlace.FIRST,
        *,
        is_exact: bool = False,
    ) -> Any:
        """
        Return a value in the types of JSON.

        Args:
            data: The value, to its end.
            at: Where it begins.
            message: Which message of a Protobuf schema it is.
            is_exact: Whether fields that a Protobuf schema lacks are an error.

        Raises:
            ValueProblem: It does not fit.
        """
        ...

    def located(self, data: bytes, at: int, message: MessageChoice) -> LocatedValue | None:
        """Return a value that decodes with the places of its parts; None if these are unknown."""
        return None

    def leaves(self, data: bytes, at: int, message: MessageChoice) -> Leaves | None:
        """Return the leaves of a value that decodes; None if they are too many."""
        ...

    def field_program(self, path: Sequence[str], like: Like) -> FieldProgram | None:
        """
        Return what finds one field; None: use `value`.

        Args:
            path: Names of the field, and of the fields around it.
            like: A value like those that will be read.
        """
        return None

    def text_program(self, like: Like) -> TextProgram | None:
        """Return what writes texts of values like one; None: use `value`."""
        return None

    @property
    def declared(self) -> Any:
        """The schema as JSON, if it is Avro's; None for others."""
        return None

    def check(self, message: MessageChoice) -> None:
        """
        Check that a schema has a message.

        Raises:
            SchemaProblem: It has not.
        """
        return


Reference: TypeAlias = tuple[str, str, int]
"""A schema that another one refers to: its name there, subject and version."""

Origin: TypeAlias = tuple[Decoder, bytes, int, MessageChoice]
"""A decoder, the bytes that it read, their begin, and the message."""


class _AvroDecoder(Decoder):
    def __init__(self, text: str, references: tuple[str, ...]) -> None:
        self.schema = AvroSchema(text, references)

    def value(self, data: bytes, at: int, *_: Any, **__: Any) -> Any:
        return self.schema.value(data, at)

    @property
    def declared(self) -> Any:
        return self.schema.declared

    def located(self, data: bytes, at: int, message: MessageChoice) -> LocatedValue | None:
        return self.schema.located(data, at)

    def leaves(self, data: bytes, at: int, message: MessageChoice) -> Leaves | None:
        return self.schema.leaves(data, at)

    def field_program(self, path: Sequence[str], like: Like) -> FieldProgram | None:
        return avro_program(self.schema, path)

    def text_program(self, like: Like) -> TextProgram | None:
        return avro_text_program(self.schema)


class _JsonDecoder(Decoder):
    def __init__(self, text: str = "") -> None:
        self._text = text

    def value(self, data: bytes, at: int, *_: Any, **__: Any) -> Any:
        return json_value(data[at:])

    def located(self, data: bytes, at: int, message: MessageChoice) -> LocatedValue | None:
        return located_json(data, at)

    def leaves(self, data: bytes, at: int, message: MessageChoice) -> Leaves | None:
        return json_leaves(data, at, self._words)

    @cached_property
    def _words(self) -> frozenset[bytes]:
        return words_of_schema(self._text) if self._text else frozenset()


PLAIN_JSON: Decoder = _JsonDecoder()
"""Decodes JSON without a schema."""


class _ProtobufDecoder(Decoder):
    def __init__(self, text: str, references: tuple[str, ...]) -> None:
        self.schema = ProtoSchema(text, references)

    def value(
        self,
        data: bytes,
        at: int,
        message: MessageChoice = MessagePlace.FIRST,
        *,
        is_exact: bool = False,
    ) -> Any:
        chosen, at = self._choose(message, data, at)
        return self.schema.value(chosen, data, at, is_exact=is_exact)

    def located(self, data: bytes, at: int, message: MessageChoice) -> LocatedValue | None:
        chosen, at = self._choose(message, data, at)
        return self.schema.located(chosen, data, at)

    def leaves(self, data: bytes, at: int, message: MessageChoice) -> Leaves | None:
        chosen, at = self._choose(message, data, at)
        return self.schema.leaves(chosen, data, at)

    def field_program(self, path: Sequence[str], like: Like) -> FieldProgram | None:
        data, at, message = like
        chosen, begin = self._choose(message, data, at)
        return proto_program(self.schema.reader_of(chosen), path, data[at:begin])

    def text_program(self, like: Like) -> TextProgram | None:
        data, at, message = like
        chosen, begin = self._choose(message, data, at)
        return proto_text_program(self.schema.reader_of(chosen), data[at:begin])

    def _begin(self, place: MessageChoice, data: bytes, at: int) -> int:
        """Return where a value begins, whichever messages the schema has."""
        match place:
            case MessagePlace.INDEXES:
                return read_indexes(data, at)[1]
            case MessagePlace.SORTED_INDEX:
                return read_index(data, at)[1]
            case MessagePlace.REF:
                return read_ref(data, at)[1]
            case _:
                return at

    def check(self, message: MessageChoice) -> None:
        chosen, _ = self._choose(message, b"", 0)
        self.schema.check(chosen)

    def _choose(self, choice: MessageChoice, data: bytes, at: int) -> tuple[ProtoMessage, int]:
        """Return a message, and where its value begins."""
        match choice:
            case MessagePlace.INDEXES:
                return self.schema.at_indexes(data, at)
            case NamedMessage(name, place):
                return self.schema.named(name), self._begin(place, data, at)
            case str():
                return self.schema.named(choice), at
            case bytes():
                return self.schema.at_indexes(choice, 0)[0], at
            case MessagePlace.SORTED_INDEX:
                return self.schema.at_sorted_index(data, at)
            case MessagePlace.REF:
                return self.schema.at_ref(data, at)
            case MessagePlace.FIRST:
                return self.schema.first, at


@dataclass(eq=False, slots=True)
class KnownSchema:
    """
    A schema.

    Attributes:
        kind: `avro`, `json-schema` or `protobuf`.
        text: As its source has it; a Protobuf descriptor in base64.
        names: Its subjects with their versions, or the name of its file with 0.
        references: Texts of the schemas that it refers to, in the order of their use.
        refers_to: Their names in it, subjects and versions, as a registry has them.
    """

    kind: str
    text: str
    names: list[tuple[str, int]] = field(default_factory=list)
    references: tuple[str, ...] = ()
    refers_to: tuple[Reference, ...] = ()
    _decoder: Decoder | SchemaProblem | None = field(default=None, repr=False)

    @property
    def decoder(self) -> Decoder:
        """
        Return the decoder.

        Raises:
            SchemaProblem: The schema can't be used.
        """
        if self._decoder is None:
            try:
                self._decoder = self._new_decoder()
            except SchemaProblem as problem:
                self._decoder = problem
        if isinstance(self._decoder, SchemaProblem):
            raise SchemaProblem(str(self._decoder))
        return self._decoder

    def _new_decoder(self) -> Decoder:
        match self.kind:
            case "avro":
                return _AvroDecoder(self.text, self.references)
            case "json-schema":
                return _JsonDecoder(self.text)
            case "protobuf":
                return _ProtobufDecoder(self.text, self.references)
        raise SchemaProblem(f"schemas of type {self.kind[:20]!r} are not read")

    def label(self, topic: str | None, *, is_key: bool) -> str:
        """Return its name: a subject of the topic with the version if it has one, or any."""
        side = "key" if is_key else "value"
        wanted = f"{topic}-{side}"
        subject, version = max(self.names, key=lambda name: (name[0] == wanted, name[1]))
        return f"{subject} v{version}" if version else subject
