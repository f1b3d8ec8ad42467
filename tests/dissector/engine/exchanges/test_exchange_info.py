"""What exchanges are about, in plain words."""

from __future__ import annotations

from pathlib import Path

from dissector.engine.exchanges.exchange_info import ExchangeInfo, exchange_info, row_info
from dissector.public import open_capture
from tests.corpus import FOLDER, each_capture

EXPECTED = {
    4: "confluent-kafka-python 2.16.1-rdkafka-2.16.0 → 75 APIs",
    64: "demo.orders[0] 36 records 357 B zstd acks=all → offset 0",
    89: "group billing → COORDINATOR_NOT_AVAILABLE",
    108: "group billing → broker 1 127.0.0.1:21863",
    121: "group billing new member → MEMBER_ID_REQUIRED",
    131: "group billing demo.orders[0,1,2] → no offset",
    148: "demo.orders[2] earliest → offset 0",
    173: "demo.orders[0] from 36 → 3 records 194 B zstd",
    464: "group billing demo.orders[0,1,2] at 72, 24",
    765: "transaction ledger → producer id 0 epoch 0",
    785: "transaction ledger commit",
}
"""Request packets of the demo, and their words."""


def test_words_of_common_exchanges() -> None:
    with open_capture(FOLDER / "demo.pcap") as capture:
        found = {
            each.request_packet: each.info for each in capture if each.request_packet in EXPECTED
        }
    assert found == EXPECTED


@each_capture("words")
def test_every_exchange_of_the_corpus_has_its_errors_and_one_line(path: Path) -> None:
    with open_capture(path) as opened:
        for each in opened:
            row = each.row()
            for found in (exchange_info(each), row_info(row)):
                text = str(found)
                assert "\n" not in text
                assert all(error in text for error in row["errors"]) or "…" in text


def test_requests_without_an_answer_say_so() -> None:
    waiting = ExchangeInfo("orders[2] from 48", "… no response")
    assert str(waiting) == "orders[2] from 48 … no response"
    assert str(row_info({"topics": ["a", "b", "c", "d"], "status": "answered"})) == (
        "a, b, c and 1 more"
    )
    assert str(row_info({"topics": [], "errors": ["NOT_LEADER"], "status": "answered"})) == (
        "→ NOT_LEADER"
    )
    assert "acks" not in str(row_info({"topics": ["a"], "status": "unanswered"}))
