"""
Single faults in real traffic are found; `python -m tests.conform.study` tries all.

An eighth of them is tried here, half of these in `make test`.
"""

from __future__ import annotations

import pytest

from tests.conform.study.faults import FAULTS, MISSED
from tests.conform.study.script import Fault, findings_above_notes, judged, script_of
from tests.corpus import fast_and_long

TRIED = FAULTS[::8]


def _name(fault: Fault) -> str:
    return f"{fault.family}: {fault.name}"


def test_the_study_has_many_distinct_faults() -> None:
    names = [_name(fault) for fault in FAULTS]
    assert len(set(names)) == len(names) >= 232
    assert MISSED.keys() <= set(names)


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    "fault",
    fast_and_long(TRIED[::6], [each for each in TRIED if each not in TRIED[::6]]),
    ids=_name,
)
def test_each_fault_is_found(fault: Fault) -> None:
    if _name(fault) in MISSED:
        pytest.skip(MISSED[_name(fault)])
    assert fault.found()


@pytest.mark.parametrize("name", ["kafka4-librdkafka-group", "kafka4-java-share-group"])
def test_a_script_without_a_fault_has_no_findings(name: str) -> None:
    assert findings_above_notes(judged(script_of(name))) == {}
