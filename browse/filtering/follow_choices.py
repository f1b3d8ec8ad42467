"""Ways to follow an exchange: by its connection, client, group, transaction and so on."""

from __future__ import annotations

from typing import NamedTuple

from browse.filtering.filter_texts import literal
from dissector.engine.exchanges.exchange import Exchange
from dissector.errors import DissectorError
from dissector.filter import parse, parse_operand, values_of
from dissector.protocol.embedded.secrecy.credentials import mask_texts
from dissector.view.text.escape import escaped

_MOST_VALUES = 8
"""Maximum number of offered values per kind; a response may name thousands of groups."""

_BODY_KINDS = (
    ("group", "kafka.consumer_group", ("kafka.consumer_group", "kafka.coordinator_key")),
    ("member", "kafka.member_id", ("kafka.member_id",)),
    ("transactional id", "kafka.transactional_id", ("kafka.transactional_id",)),
    (
        "producer id",
        "kafka.producer_id",
        ("kafka.producer_id", "request.producer_id", "response.producer_id"),
    ),
)
"""Title, column of the values, and the columns to compare with them."""
_PARTITION = "kafka.partition_id"


class FollowChoice(NamedTuple):
    """
    A way to narrow the list.

    Attributes:
        title: Title on the screen, escaped.
        filter: Filter that passes the exchange and all related ones.
    """

    title: str
    filter: str


def follow_choices(exchange: Exchange) -> list[FollowChoice]:
    """Return the ways to follow an exchange, the narrowest first; none with a secret in it."""
    return [
        choice
        for choice in _candidates(exchange)
        if mask_texts(choice, exchange.known_secrets) == choice and _passes(choice.filter, exchange)
    ]


def _candidates(exchange: Exchange) -> list[FollowChoice]:
    connection = f"connection == {exchange.connection}"
    found = [FollowChoice(f"connection {exchange.connection}", connection)]
    if exchange.correlation_id is not None:
        number = exchange.correlation_id
        text = f"{connection} and correlation_id == {number}"
        found.append(FollowChoice(f"correlation id {number} of the connection", text))
    host = exchange.client.rpartition(":")[0].strip("[]")
    found += [
        _choice("client address", host, ("ip.src",)),
        _choice("broker", exchange.broker, ("broker",)),
    ]
    if exchange.client_id:
        found.append(_choice("client id", exchange.client_id, ("client_id",)))
    for title, name, compared in _BODY_KINDS:
        found += [_choice(title, value, compared) for value in _values(exchange, name)]
    found += [_choice("topic", topic, ("topic",)) for topic in exchange.topics[:_MOST_VALUES]]
    if len(exchange.topics) == 1:
        topic = literal(exchange.topics[0])
        found += [
            FollowChoice(
                f"partition {escaped(exchange.topics[0])}-{number}",
                f"topic == {topic} and {_PARTITION} == {number}",
            )
            for number in _values(exchange, _PARTITION)
        ]
    return found


def _choice(title: str, value: object, names: tuple[str, ...]) -> FollowChoice:
    tests = " or ".join(f"{name} == {literal(value)}" for name in names)
    return FollowChoice(f"{title} {escaped(str(value))}", tests)


def _values(exchange: Exchange, name: str) -> list[int | str]:
    """Return the first distinct values of a name, without empty values and -1."""
    values = values_of(exchange, parse_operand(name))
    plain = (each for each in values if isinstance(each, int | str) and each not in (-1, ""))
    return list(dict.fromkeys(plain))[:_MOST_VALUES]


def _passes(text: str, exchange: Exchange) -> bool:
    try:
        return parse(text).matches(exchange)
    except DissectorError:
        return False
