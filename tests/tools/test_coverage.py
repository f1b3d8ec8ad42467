from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dissector.protocol.messages import decode_request, decode_response
from tests.default_frames import request, response
from tools.record.coverage import CAPTURES, PAGE, WireVersions, captures_in, look, page, spans

HEARTBEAT, CONTROLLED_SHUTDOWN = 12, 7


def exchange(
    key: int = HEARTBEAT, version: int = 4, client_id: str | None = "app", extra: bytes = b""
) -> Any:
    message = decode_request(request(key, version, 1, client_id)[4:])
    answered = decode_response(response(key, version, 1)[4:] + extra, key, version)
    return SimpleNamespace(request=message, response=answered)


@pytest.mark.long
def test_the_page_agrees_with_the_captures() -> None:
    written = (CAPTURES / PAGE).read_text(encoding="utf-8")
    assert written == page(look(captures_in(CAPTURES))), "run python -m tools.record.coverage"


@pytest.mark.parametrize(
    ("versions", "text"),
    [
        ([], ""),
        ([4], "4"),
        ([0, 1, 2], "0-2"),
        ([7, 0, 1, 9, 8, 4], "0-1, 4, 7-9"),
    ],
)
def test_spans(versions: list[int], text: str) -> None:
    assert spans(versions) == text


@pytest.mark.parametrize(
    ("client_id", "swept", "by"),
    [
        ("app", False, "real"),
        ("app", True, "real"),  # a request of a broker in the capture of a sweep
        ("sweep", True, "sweep"),
        ("kafkashark-sweep", True, "sweep"),
        (None, False, "real"),
    ],
)
def test_requests_of_clients_and_sweeps_are_distinguished(
    client_id: str | None, swept: bool, by: str
) -> None:
    seen = WireVersions()
    seen.add(exchange(client_id=client_id), swept)
    other = {"real": "sweep", "sweep": "real"}[by]
    assert seen.requests == seen.responses == {by: {(HEARTBEAT, 4)}, other: set()}


def test_a_header_without_client_id_in_a_sweep_belongs_to_the_sweep() -> None:
    seen = WireVersions()
    seen.add(exchange(CONTROLLED_SHUTDOWN, 0), True)
    assert seen.requests["sweep"] == {(CONTROLLED_SHUTDOWN, 0)}


def test_responses_with_bytes_left_over_are_not_counted() -> None:
    seen = WireVersions()
    seen.add(exchange(extra=b"?"), False)
    assert seen.requests["real"] == {(HEARTBEAT, 4)}
    assert seen.responses == {"real": set(), "sweep": set()}


def test_no_response() -> None:
    seen = WireVersions()
    silent = exchange()
    silent.response = None
    seen.add(silent, False)
    assert seen.requests["real"] == {(HEARTBEAT, 4)}
    assert not seen.responses["real"]


def test_orphans_are_not_counted() -> None:
    seen = WireVersions()
    orphan = exchange()
    orphan.request = None
    seen.add(orphan, False)
    assert seen == WireVersions()


def test_the_page_lists_versions_never_answered() -> None:
    seen = WireVersions()
    seen.add(exchange(version=0), False)
    seen.add(exchange(version=3), False)
    row = next(line for line in page(seen).splitlines() if line.startswith("| 12 |"))
    assert row == "| 12 | Heartbeat | 0-4 | 0, 3 |  | 0, 3 |  | 1-2, 4 |"
