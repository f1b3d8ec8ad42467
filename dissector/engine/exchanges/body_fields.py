"""
Bodies for programs: a topic that has only an id also has its name, and errors name the fields.

The commands read plain Containers: this takes about as long again as decoding a small body.
"""

from __future__ import annotations

from typing import Any

from construct import Container

from dissector.engine.facts.topic_table import TopicNames
from dissector.protocol.facts import NO_ID
from dissector.protocol.messages import Message

NAMES = ("topic", "name", "topic_name")
"""Names of the fields with the name of a topic, in structs that also have an id in some version."""

ID = "topic_id"


class BodyFields(Container):  # type: ignore[misc]
    """
    The fields of a struct in a body.

    It equals a Container of the same fields, and is encoded, copied and pickled like it.

    A struct with a `topic_id` has the attribute `topic`, even where it has no such field: the name,
    as `Exchange.topics` has it. So has `name`, for versions before which there was such a field.
    """

    # Container looks here for attributes that are not fields.
    __slots__ = ("__recursion_lock__", "_names", "_of")

    def __init__(self, fields: Container, of: str, names: TopicNames) -> None:
        """
        Wrap a struct and all structs inside it.

        Args:
            fields: The struct.
            of: The message, for errors: `Fetch v13 response`.
            names: Known names of topic ids.
        """
        super().__init__(fields)
        self._of = of
        self._names = names
        for name, value in fields.items():
            self[name] = _wrapped(value, of, names)

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        if name in NAMES and ID in self:
            return self._topic()
        if name.startswith("__"):
            raise AttributeError(name)
        fields = ", ".join(map(str, self)) or "none"
        raise AttributeError(f"{self._of} has no field {name!r} here; fields: {fields}")

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
        return None if topic == NO_ID else self._names.name(topic)


def _wrapped(value: Any, of: str, names: TopicNames) -> Any:
    if isinstance(value, Container):
        return BodyFields(value, of, names)
    if isinstance(value, list) and value and isinstance(value[0], Container):
        return type(value)(_wrapped(each, of, names) for each in value)
    return value


def wrap_body(message: Message, names: TopicNames) -> None:
    """Give a message a body for programs; see `BodyFields`."""
    if message.body is not None and not isinstance(message.body, BodyFields):
        of = f"{message.api} v{message.shown_version} {message.kind}"
        message.body = BodyFields(message.body, of, names)
