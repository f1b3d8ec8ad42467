"""Single faults in real traffic are found; `tests.conform.study` prints by which rules."""

from __future__ import annotations

import pytest

from tests.conform.study.faults import FAULTS
from tests.conform.study.script import Fault, findings_above_notes, judged, script_of
from tests.corpus import fast_and_long

FAST = FAULTS[::25]


def _name(fault: Fault) -> str:
    return f"{fault.family}: {fault.name}"


def test_the_study_has_many_distinct_faults() -> None:
    assert len(set(map(_name, FAULTS))) == len(FAULTS) >= 90


@pytest.mark.parametrize(
    "fault", fast_and_long(FAST, [each for each in FAULTS if each not in FAST]), ids=_name
)
def test_each_fault_is_found(fault: Fault) -> None:
    assert fault.found()


@pytest.mark.parametrize("name", ["kafka4-librdkafka-group", "kafka4-java-share-group"])
def test_a_script_without_a_fault_has_no_findings(name: str) -> None:
    assert findings_above_notes(judged(script_of(name))) == {}
