"""What is read off the tape for a whole window is what the codecs say, exchange by exchange."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dissector import open_capture
from dissector.engine import known as module
from dissector.engine.exchanges import ANSWERED, NO_RESPONSE, UNANSWERED, Row, columns
from dissector.engine.frames import Frame
from dissector.engine.known import Known, known
from dissector.protocol.records import Record, new_batch
from tests.frames import request, response

CAPTURES = sorted(
    path for path in (Path(__file__).parents[3] / "captures").iterdir() if ".pcap" in path.name
)


def row(status: int, asked: bytes, answer: bytes | None = None) -> Row:
    def frame(data: bytes) -> Frame:
        return Frame(0, data[4:], len(data) - 4, 1, 1, 0)

    return Row(0, status, 0, frame(asked), None if answer is None else frame(answer))


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read also small windows off the tape."""
    monkeypatch.setattr(module, "WORTHWHILE", 1)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_same_rows_as_the_codecs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_tape = [exchange.row() for exchange in open_capture(path)]
    monkeypatch.setattr(module, "WORTHWHILE", 10**9)
    assert by_tape == [exchange.row() for exchange in open_capture(path)]


def test_most_exchanges_are_known() -> None:
    capture = open_capture(next(path for path in CAPTURES if path.name == "demo.pcap"))
    told = [each for window in capture.windows() for each in known(window.exchanges)]
    assert sum(each is not None for each in told) > len(told) / 2


def test_a_known_exchange() -> None:
    topic = {"name": "orders", "partition_data": [{"index": 0, "records": None}]}
    failed = {"index": 0, "error_code": 6, "base_offset": -1, "record_errors": []}
    answers = [{"name": "orders", "partition_responses": [failed, failed]}]
    asked = request(0, 9, 7, "me", acks=1, topic_data=[topic])
    table = columns([row(ANSWERED, asked, response(0, 9, 7, responses=answers))])
    assert known(table) == [Known(0, 9, 7, "me", ("NOT_LEADER_OR_FOLLOWER",), ("orders",))]


@pytest.mark.parametrize("client_id", [None, "", "caf\u00e9", "\udcff"])
def test_client_ids(client_id: str | None) -> None:
    table = columns([row(UNANSWERED, request(12, 4, -3, client_id))])
    assert known(table) == [Known(12, 4, -3, client_id, (), ())]


@pytest.mark.parametrize(
    "exchange",
    [
        pytest.param(row(ANSWERED, request(12, 4, 1), response(12, 4, 1) + b"x"), id="left over"),
        pytest.param(row(ANSWERED, request(12, 4, 1), response(12, 4, 1)[:-1]), id="cut off"),
        pytest.param(row(UNANSWERED, request(12, 4, 1)[:9]), id="no header"),
        pytest.param(
            row(ANSWERED, request(18, 3, 1), response(18, 0, 1, error_code=35)),
            id="refused version",
        ),
        pytest.param(row(ANSWERED, request(3, 12, 1), response(3, 12, 1)), id="tells names"),
        pytest.param(
            row(UNANSWERED, request(12, 4, 1)[:4] + b"\x03\xe7\0\0" + request(12, 4, 1)[8:]),
            id="unknown api",
        ),
    ],
)
def test_left_to_the_codecs(exchange: Row) -> None:
    good = row(ANSWERED, request(12, 4, 2), response(12, 4, 2))
    first, second = known(columns([exchange, good]))
    assert first is None
    assert second == Known(12, 4, 2, "test", (), ())


def test_records_that_are_not_right_are_left_to_the_codecs() -> None:
    data = new_batch([Record(value=b"v")]).to_bytes()
    wrong = data[:-1] + bytes((data[-1] ^ 1,))
    for records, fits in ((data, True), (wrong, False), (data[:-1], False)):
        topic = {"name": "t", "partition_data": [{"index": 0, "records": records}]}
        table = columns([row(NO_RESPONSE, request(0, 7, 1, topic_data=[topic]))])
        assert (known(table)[0] is not None) == fits


def test_few_exchanges_are_not_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WORTHWHILE", 2)
    assert known(columns([row(ANSWERED, request(12, 4, 2), response(12, 4, 2))])) == [None]
    assert known(columns([])) == []


def test_numbers_are_signed() -> None:
    data = np.frombuffer(b"\xff\xfe\x7f\xff", np.uint8)
    assert module._number(data, np.array([0, 2]), 2).tolist() == [-2, 32767]
