"""What a `.proto` file declares, as far as reading values needs it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class ProtoField:
    """
    A field of a message, or an extension.

    Attributes:
        name: As declared; that of an extension is in brackets.
        number: Its number.
        type_name: A scalar type, or the name of a message or an enum as written.
        is_repeated: Whether it is a list.
        has_presence: Whether a value that was never set differs from its default.
        oneof: The name of the oneof that it is in, or empty.
        is_group: Whether it is a group.
    """

    name: str
    number: int
    type_name: str
    is_repeated: bool = False
    has_presence: bool = True
    oneof: str = ""
    is_group: bool = False


@dataclass(slots=True)
class ProtoEnum:
    """An enum: its full name, and its names by number; the first counts where two are equal."""

    full_name: str
    names: dict[int, str] = field(default_factory=dict)
    default: str | int = 0


@dataclass(slots=True)
class ProtoMessage:
    """
    A message.

    Attributes:
        full_name: With the package, and the messages around it.
        fields: In the order of their declaration.
        messages: Messages declared inside it, in order.
        enums: Enums declared inside it.
        is_map_entry: Whether it is an entry of a map.
    """

    full_name: str
    fields: list[ProtoField] = field(default_factory=list)
    messages: list[ProtoMessage] = field(default_factory=list)
    enums: list[ProtoEnum] = field(default_factory=list)
    is_map_entry: bool = False


@dataclass(slots=True)
class Extension:
    """A field that a file adds to a message, whose name is resolved in a scope."""

    extendee: str
    scope: str
    field: ProtoField


@dataclass(slots=True)
class ProtoFile:
    """
    A file.

    Attributes:
        package: The names in it begin with this.
        imports: Paths of other files.
        messages: On its first level, in order.
        enums: On its first level.
        extensions: Of any level.
        is_implicit: Whether fields have no presence unless it is declared, as in proto3.
    """

    package: str = ""
    imports: list[str] = field(default_factory=list)
    messages: list[ProtoMessage] = field(default_factory=list)
    enums: list[ProtoEnum] = field(default_factory=list)
    extensions: list[Extension] = field(default_factory=list)
    is_implicit: bool = False

    def all_messages(self) -> Iterator[ProtoMessage]:
        """Yield the messages of all levels, outer ones first."""
        waiting = list(reversed(self.messages))
        while waiting:
            message = waiting.pop()
            yield message
            waiting.extend(reversed(message.messages))

    def all_enums(self) -> Iterator[ProtoEnum]:
        """Yield the enums of all levels."""
        yield from self.enums
        for message in self.all_messages():
            yield from message.enums


def joined(scope: str, name: str) -> str:
    """Return a name inside a scope."""
    return f"{scope}.{name}" if scope else name
