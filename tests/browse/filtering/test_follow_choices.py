"""Choices for following an exchange."""

from __future__ import annotations

import pytest

from browse.filtering.follow_choices import follow_choices
from dissector.filter import parse
from dissector.public import open_capture
from tests.corpus import FOLDER


@pytest.mark.parametrize(
    ("capture", "api", "titles"),
    [
        ("demo.pcap", "JoinGroup", ("connection", "correlation id", "client id", "group")),
        ("demo.pcap", "Heartbeat", ("group billing", "member billing-1")),
        ("demo.pcap", "Produce", ("topic demo.orders", "partition demo.orders-1")),
        ("kafka4-librdkafka-transactions.pcap", "EndTxn", ("transactional id", "producer id")),
    ],
)
def test_choices(capture: str, api: str, titles: tuple[str, ...]) -> None:
    if not (FOLDER / capture).exists():
        pytest.skip(f"{capture} is not here")
    exchange = next(each for each in open_capture(FOLDER / capture, filter=f"api == {api}"))
    choices = follow_choices(exchange)
    for title in titles:
        assert any(each.title.startswith(title) for each in choices), [
            each.title for each in choices
        ]


@pytest.mark.long
def test_each_choice_matches_its_exchange() -> None:
    for exchange in open_capture(FOLDER / "demo.pcap", filter="request_packet < 300"):
        for choice in follow_choices(exchange):
            assert parse(choice.filter).matches(exchange), choice
