"""Payloads of records are masked in reports by default."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dissector.protocol.records import Record, new_batch
from replay.compare.payload_masking import hidden
from replay.model.outcome import Outcome
from replay.report.report import Report, html_lines, junit_lines, ndjson_lines, text_lines
from tests.replay.support.comparison import fetched
from tests.replay.support.outcomes import outcome
from tests.replay.support.reports import made

SECRETS = "opensesame", "joshua", "swordfish"


def _batch(key: str, value: str, header: str) -> bytes:
    headers = (("trace", header.encode()),)
    record = Record(0, 0, 0, key.encode(), value.encode(), headers, 0, 0)
    return new_batch([record]).to_bytes()


def _outcomes() -> list[Outcome]:
    """Different records, and a missing partition."""
    records = _batch(*SECRETS)
    lost = {"responses": [{"topic": "orders", "partitions": []}]}
    others = [SECRETS[0] + "1", SECRETS[1] + "2", SECRETS[2] + "3"]
    return [
        outcome("Fetch", 4, fetched(records), fetched(_batch(*others))),
        outcome("Fetch", 4, fetched(records), lost, number=1),
    ]


def _texts(report: Report) -> Iterator[str]:
    for lines in (text_lines, ndjson_lines, html_lines, junit_lines):
        yield "\n".join(lines(report))


def test_reports_mask_payloads() -> None:
    for text in _texts(made(*_outcomes())):
        for secret in SECRETS:
            assert secret not in text
            assert secret.encode().hex() not in text
        assert "10 bytes, hidden" in text


def test_reports_show_payloads_on_request() -> None:
    for text in _texts(made(*_outcomes(), show_payloads=True)):
        assert all(secret in text for secret in SECRETS)
        assert "bytes, hidden" not in text


@pytest.mark.parametrize(
    ("path", "sides", "shown"),
    [
        (
            "r[t].records[5].value",
            ("abc", "abd"),
            ("3 bytes, hidden", "3 bytes, hidden, with other bytes"),
        ),
        ("r[t].records[5].value", (None, {"hex": "00ff"}), (None, "2 bytes, hidden")),
        ("r[t].records[5].headers", ([["h", "ab"]], []), ([["h", "2 bytes, hidden"]], [])),
        (
            "r[t].records[5].headers",
            ([["h", "ab"]], [["h", "ac"]]),
            ([["h", "2 bytes, hidden"]], '[["h", "2 bytes, hidden"]], with other bytes'),
        ),
        ("r[t].records[5].timestamp", (1, 2), (1, 2)),
        ("r[t].records[5].new_field", (1, 2), ("hidden", "hidden, with other bytes")),
        ("r[t].records", ("1 record", "no records"), ("1 record", "no records")),
        (
            "r[t]",
            ({"records": "00ff", "a": 1}, None),
            ({"records": "2 bytes, hidden", "a": 1}, None),
        ),
        (
            "r[t].records[5]",
            ({"offset": 5, "key": None, "value": "a", "headers": []}, None),
            ({"offset": 5, "key": None, "value": "1 byte, hidden", "headers": []}, None),
        ),
        ("error_code", ("NONE", "X"), ("NONE", "X")),
    ],
)
def test_masked_payloads_keep_their_sizes(
    path: str, sides: tuple[object, object], shown: tuple[object, object]
) -> None:
    assert hidden(path, *sides) == shown


def test_payloads_of_topics_named_like_a_path_are_masked() -> None:
    name = "a.records[1].timestamp"
    for path in (f"r[{name}.x].records[2].value", f"r[t].records[2].headers[{name}]"):
        assert hidden(path, "abc", "d") == ("3 bytes, hidden", "1 byte, hidden")
