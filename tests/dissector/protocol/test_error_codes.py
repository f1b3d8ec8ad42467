"""The table of error codes, compared with Kafka's and two other tables."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode

from dissector.protocol.error_codes import ERRORS, error_code, error_name
from tests.dissector.protocol.protocol_facts import facts


def test_facts(shared: Path) -> None:
    codes = facts(shared, "error_codes")
    assert {f["code"]: (f["name"], f["retriable"]) for f in codes} == ERRORS


def test_kio_agrees() -> None:
    for error in ErrorCode:
        assert ERRORS[int(error)] == (error.name.upper(), error.retriable)
    assert len(ErrorCode) >= 130


# kafka-python has some own names, and some former names of Kafka.
RENAMED = {
    -1: "UNKNOWN",
    0: "NO_ERROR",
    6: "NOT_LEADER_FOR_PARTITION",
    10: "MESSAGE_SIZE_TOO_LARGE",
    17: "INVALID_TOPIC",
    39: "INVALID_REPLICATION_ASSIGNMENT",
}


def test_kafka_python_agrees() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from kafka.errors import for_code
    known = {code: for_code(code).message for code in ERRORS}
    named = {code: name for code, name in known.items() if code == -1 or name != "UNKNOWN"}
    assert named == {code: RENAMED.get(code, ERRORS[code][0]) for code in named}
    assert len(named) >= 129


def test_codes_are_consecutive() -> None:
    assert list(ERRORS) == list(range(-1, max(ERRORS) + 1))
    assert ERRORS[0] == ("NONE", False)


@pytest.mark.parametrize("code", ERRORS)
def test_codes_are_found_by_name(code: int) -> None:
    assert error_code(error_name(code)) == code


@pytest.mark.parametrize(
    ("code", "name"), [(999, "ERROR_999"), (-2, "ERROR_-2"), (137, "ERROR_137")]
)
def test_unknown_code(code: int, name: str) -> None:
    assert error_name(code) == name


@pytest.mark.parametrize("name", ["", "none", "NO_SUCH_ERROR", "ERROR_999"])
def test_unknown_name(name: str) -> None:
    assert error_code(name) is None
