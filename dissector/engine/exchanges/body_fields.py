"""
Bodies for programs: a topic that has only an id also has its name, and errors name the fields.

The commands read plain Containers: this takes half as long as decoding, in addition to it.
"""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

from construct import Container

from dissector.engine.facts.topic_table import TopicNames
from dissector.errors import suggestion
from dissector.protocol.facts import NO_ID
from dissector.protocol.messages import Message

NAMES = ("topic", "name", "topic_name")
"""Names of the fields with the name of a topic, in structs that also have an id in some version."""

ID = "topic_id"


class Context(NamedTuple):
    """
    What all structs of a body share.

    Attributes:
        empty: The message without its bytes and body, for errors.
        names: Known names of topic ids.
    """

    empty: Message
    names: TopicNames

    def __str__(self) -> str:
        return f"{self.empty.api} v{self.empty.shown_version} {self.empty.kind}"


class BodyFields(Container):  # type: ignore[misc]
    """
    The fields of a struct in a body.

    It equals a Container of the same fields, and is encoded, copied and pickled like it.

    A struct with a `topic_id` has the attribute `topic`, even where it has no such field: the name,
    as `Exchange.topics` has it. So has `name`, for versions before which there was such a field.
    """

    # Container looks here for attributes that are not fields.
    __slots__ = ("__recursion_lock__", "_context")

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        if name in NAMES and ID in self:
            return self._topic()
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(self._no_field(name))

    def __missing__(self, name: object) -> NoReturn:
        raise KeyError(self._no_field(name))

    def _no_field(self, name: object) -> str:
        text = f"{self._context} has no field {name!r} here"
        fields = ", ".join(map(str, self)) or "none"
        return f"{text}{suggestion(str(name), list(self))}; fields: {fields}"

    def __dir__(self) -> list[str]:
        """Return the fields and attributes, for completion."""
        return [*super().__dir__(), *(NAMES[:1] if ID in self else ())]

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what makes a Container of the fields, without the names of the capture."""
        return Container, (dict(self),)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return self.__reduce__()

    def _topic(self) -> str | None:
        """Return the name of the topic, or its id as text; None for no topic."""
        known = next((self[name] for name in NAMES if self.get(name)), None)
        topic = self[ID] if known is None else known
        return None if topic == NO_ID else self._context.names.name(topic)


_set_context = BodyFields._context.__set__
"""Container's own way to set an attribute takes longer than copying a small struct."""


def body_fields(fields: Container, context: Context) -> BodyFields:
    """Return a struct and all structs inside it for programs."""
    out = BodyFields(fields)
    _set_context(out, context)
    for name, value in fields.items():
        kind = value.__class__
        if kind is Container:
            out[name] = body_fields(value, context)
        elif kind is list and value and value[0].__class__ is Container:
            out[name] = [body_fields(each, context) for each in value]
    return out


def wrap_body(message: Message, names: TopicNames) -> None:
    """Give a message a body for programs; see `BodyFields`."""
    if message.body is not None and not isinstance(message.body, BodyFields):
        message.body = body_fields(message.body, Context(_without_bytes(message), names))


def _without_bytes(message: Message) -> Message:
    return Message(
        message.kind,
        b"",
        0,
        message.api_key,
        message.api_version,
        message.newer_version,
        schemas=message.schemas,
    )
