"""Differences by field, in the order of the requests."""

from __future__ import annotations

import pytest

from tests.replay.support.outcomes import outcome
from tests.replay.support.reports import created, made


def test_causes_precede_their_consequences() -> None:
    """Even if the consequences are more, or their responses come first."""
    late = [outcome("Heartbeat", 3, {}, {"error_code": 22}, number=each) for each in (9, 8, 7)]
    cause = outcome("JoinGroup", 5, {}, {"error_code": 26}, number=4)
    report = made(*late, cause)
    assert [(row["errors"], row["first_step"]) for row in report.field_rows()] == [
        ("NONE -> INVALID_SESSION_TIMEOUT", 4),
        ("NONE -> ILLEGAL_GENERATION", 7),
    ]
    first = report.summary()["first_difference"]
    assert first == "step 4: JoinGroup.error_code: NONE -> INVALID_SESSION_TIMEOUT"
    assert [row["step"] for row in report.field_rows()[1]["examples"]] == [7, 8]


def test_one_field_with_several_errors_has_a_row_for_each() -> None:
    wrong = [outcome("Heartbeat", 3, {}, {"error_code": code}, number=code) for code in (25, 22)]
    assert [row["errors"] for row in made(*wrong).field_rows()] == [
        "NONE -> ILLEGAL_GENERATION",
        "NONE -> UNKNOWN_MEMBER_ID",
    ]
    assert made(*wrong).fields["Heartbeat.error_code"].count == 2


@pytest.mark.long
def test_names_of_settings_are_bounded() -> None:
    """They come from the capture, of any length."""
    report = made(*(_with(f"setting-{number}") for number in range(3000)))
    rows = report.field_rows()
    assert 1000 < len(rows) < 2500
    assert rows[-1]["field"] == "CreateTopics.topics[*].configs[*].value"
    assert sum(row["count"] for row in rows) == 3000


def _with(name: str):  # type: ignore[no-untyped-def]
    sides = created("1"), created("2")
    for side in sides:
        side["topics"][0]["configs"][0]["name"] = name
    return outcome("CreateTopics", 5, *sides)
