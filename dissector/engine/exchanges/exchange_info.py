"""
One line in plain words for each exchange: what it asks, and what the answer is.

The group, the transaction, topics and partitions of any API follow from the meanings of its fields;
`info_phrases` adds what some APIs are about.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol, TypeAlias
from uuid import UUID

from dissector.engine.exchanges.info_phrases import REQUESTS, RESPONSES
from dissector.protocol.context import using
from dissector.protocol.facts import NO_ID
from dissector.protocol.field_meanings import meaning_of
from dissector.protocol.field_roles import Role
from dissector.protocol.messages import Message
from dissector.protocol.schema import Field, split_tagged

COLUMNS = ("errors", "status", "topics", "problems")
"""The columns of `pairs` that decide about the words."""

_MOST_NAMES, _MOST_PARTITIONS = 3, 6
_LONG_BYTES = 1 << 16
"""Longer bodies are decoded only where most of them is records."""
_WITH_RECORDS = frozenset((0, 1, 78))
_SUBJECTS = {Role.GROUP: "group", Role.TRANSACTIONAL_ID: "transaction"}

_NO_ANSWER = {
    "unanswered": "… no response",
    "waiting": "… waiting",
    "one_sided": "… the other direction was not captured",
}

_Body: TypeAlias = Mapping[str, Any]
_Place: TypeAlias = tuple[str | UUID, list[int]]


class AnyExchange(Protocol):
    """What the words are made of: an `Exchange`, which has them as an attribute itself."""

    @property
    def api(self) -> str | None:
        """The name of the API."""

    @property
    def api_key(self) -> int | None:
        """Its key."""

    @property
    def request(self) -> Message | None:
        """The decoded request."""

    @property
    def response(self) -> Message | None:
        """The decoded response."""

    @property
    def request_bytes(self) -> int | None:
        """Size of the request."""

    @property
    def response_bytes(self) -> int | None:
        """Size of the response."""

    def column(self, name: str) -> Any:
        """Return a column of `pairs`."""

    def known_topic(self, topic_id: UUID) -> str | None:
        """Return the name of a topic id."""


class ExchangeInfo(NamedTuple):
    """
    An exchange in plain words; names of the capture are neither escaped nor masked.

    Attributes:
        request: What is asked.
        response: The answer, or its errors; empty without anything to say.
    """

    request: str
    response: str

    def __str__(self) -> str:
        arrow = " → " if self.response and not self.response.startswith("…") else " "
        return f"{self.request}{arrow if self.response else ''}{self.response}".strip()


def row_info(row: Mapping[str, Any]) -> ExchangeInfo:
    """Return what `COLUMNS` of an exchange say, without its bodies."""
    return ExchangeInfo(_listed(row.get("topics") or ()), _answer(row, ""))


def exchange_info(exchange: AnyExchange, row: Mapping[str, Any] | None = None) -> ExchangeInfo:
    """Return an exchange in plain words; `row` has its `COLUMNS` where they are known better."""
    if row is None:
        row = {name: exchange.column(name) for name in COLUMNS}
    size = (exchange.request_bytes or 0) + (exchange.response_bytes or 0)
    if size > _LONG_BYTES and exchange.api_key not in _WITH_RECORDS:
        return row_info(row)
    request = _words(exchange, exchange.request) or row_info(row).request
    answer = "" if row.get("errors") else _phrase(RESPONSES, exchange, exchange.response)
    return ExchangeInfo(request, _answer(row, answer))


def groups_of(exchange: AnyExchange) -> list[str]:
    """Return the groups that a request names, each once."""
    struct, body = _declared(exchange, exchange.request)
    if struct is None:
        return []
    return list(dict.fromkeys(struct.names(Role.GROUP, body)))


def partitions_of(exchange: AnyExchange) -> list[str]:
    """Return the partitions that an exchange is about, each once, as `TOPIC-NUMBER`."""
    for message in (exchange.request, exchange.response):
        struct, body = _declared(exchange, message)
        places = [] if struct is None else struct.topics(body)
        names = [
            f"{topic if isinstance(topic, str) else exchange.known_topic(topic) or topic}-{number}"
            for topic, partitions in places
            for number in partitions
        ]
        if names:  # a Fetch of a session may name them in its response only
            return list(dict.fromkeys(names))
    return []


def _declared(exchange: AnyExchange, message: Message | None) -> tuple[_Struct | None, _Body]:
    """Return the declared fields of a message and its body; None if it can't be read."""
    if message is None or message.body is None or message.schema is None:
        return None, {}
    path = f"{exchange.api}.{message.kind}"
    with using(message.schemas):
        return _Struct(path, message.schema.fields, message.api_version or 0), message.body


def _answer(row: Mapping[str, Any], answer: str) -> str:
    if missing := _NO_ANSWER.get(row.get("status", "")):
        return missing
    if errors := row.get("errors"):
        return ", ".join(errors)
    problems = row.get("problems")
    return answer or (f"damaged: {problems[0]}" if problems else "")


def _words(exchange: AnyExchange, message: Message | None) -> str:
    """Return what a request asks."""
    if message is None or message.body is None or message.schema is None:
        return ""
    struct = _Struct(
        f"{exchange.api}.{message.kind}", message.schema.fields, message.api_version or 0
    )
    with using(message.schemas):
        subjects = [
            f"{word} {_listed(names)}"
            for role, word in _SUBJECTS.items()
            if (names := list(dict.fromkeys(struct.names(role, message.body))))
        ]
        topics = struct.topics(message.body)
        places = [f"{_topic_name(exchange, topic)}{_numbers(found)}" for topic, found in topics]
    parts = [*subjects, _listed(places), _phrase(REQUESTS, exchange, message)]
    return " ".join(filter(None, parts))


def _phrase(phrases: Mapping[str, Any], exchange: AnyExchange, message: Message | None) -> str:
    """Return what an API is about beyond its topics and group; empty for most."""
    phrase = phrases.get(exchange.api or "")
    if phrase is None or message is None or message.body is None:
        return ""
    try:
        return str(phrase(message.body))
    except (KeyError, TypeError, IndexError, AttributeError, ValueError):
        return ""  # another version, or a message definition of the user's


def _listed(names: Sequence[str]) -> str:
    """Return the first of some names, and the number of the others."""
    more = len(names) - _MOST_NAMES
    text = ", ".join(names[:_MOST_NAMES])
    return f"{text} and {more:,} more" if more > 0 else text


def _topic_name(exchange: AnyExchange, topic: str | UUID) -> str:
    if isinstance(topic, str):
        return topic
    return exchange.known_topic(topic) or f"{str(topic)[:8]}…"


def _numbers(partitions: Sequence[int]) -> str:
    if not partitions:
        return ""
    more = len(partitions) - _MOST_PARTITIONS
    texts = ",".join(map(str, partitions[:_MOST_PARTITIONS]))
    return f"[{texts},+{more:,}]" if more > 0 else f"[{texts}]"


class _Struct(NamedTuple):
    """
    The declared fields of a body or of an element in it.

    Attributes:
        path: Where it is, from the API and the kind on, as `meaning_of` takes it.
        fields: The fields of all versions.
        version: The version.
    """

    path: str
    fields: tuple[Field, ...]
    version: int

    def names(self, role: Role, body: _Body) -> Iterator[str]:
        """Yield the texts of a role in wire order."""
        for name, inner in _members(self, role):
            value = body.get(name)
            for item in _items(value):
                if inner is not None and isinstance(item, Mapping):
                    yield from inner.names(role, item)
                elif inner is None and item and isinstance(item, str):
                    yield item

    def topics(self, body: _Body) -> Iterator[_Place]:
        """Yield the topics in wire order, each with its partitions."""
        for name, inner in _members(self, Role.TOPIC, Role.TOPIC_ID):
            for item in _items(body.get(name)):
                if inner is None:
                    if item and item != NO_ID and isinstance(item, str | UUID):
                        yield item, []
                elif isinstance(item, Mapping):
                    yield from inner.topic_of(item)

    def topic_of(self, item: _Body) -> Iterator[_Place]:
        """Yield the topic of an element with all its partitions, or the topics in it."""
        found = list(self.topics(item))
        is_one = any(inner is None for _, inner in _members(self, Role.TOPIC, Role.TOPIC_ID))
        if found and is_one:
            yield found[0][0], list(self.partitions(item))
        else:
            yield from found

    def partitions(self, item: _Body) -> Iterator[int]:
        """Yield the numbers of partitions."""
        for name, inner in _members(self, Role.PARTITION):
            for value in _items(item.get(name)):
                if inner is not None and isinstance(value, Mapping):
                    yield from inner.partitions(value)
                elif inner is None and isinstance(value, int):
                    yield value


def _items(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else () if value is None else (value,)


@cache
def _members(struct: _Struct, *roles: Role) -> tuple[tuple[str, _Struct | None], ...]:
    """Return the fields of some roles, and the structs with such fields, in wire order."""
    plain, tagged = split_tagged(struct.fields, struct.version)
    found: list[tuple[str, _Struct | None]] = []
    for each in (*plain, *tagged):
        path = f"{struct.path}.{each.name}"
        if each.fields:
            inner = _Struct(path, each.fields, struct.version)
            if _members(inner, *roles):
                found.append((each.name, inner))
        elif meaning_of(each, path).role in roles:
            found.append((each.name, None))
    return tuple(found)
