"""
Single faults in real traffic are found: `python -m tests.conform.study` tries them all.

Here each eighth of them is tried, half of these in `make test`.
"""

from __future__ import annotations

import pytest

from tests.conform.study.faults import FAULTS, MISSED
from tests.conform.study.script import Fault, accused, judged, script_of
from tests.corpus import fast_and_long

TRIED = FAULTS[::8]


def _name(fault: Fault) -> str:
    return f"{fault.family}: {fault.name}"


def test_the_study_is_large_and_its_faults_are_different() -> None:
    names = [_name(fault) for fault in FAULTS]
    assert len(set(names)) == len(names) >= 232
    assert MISSED.keys() <= set(names)


@pytest.mark.parametrize("fault", fast_and_long(TRIED[::2], TRIED[1::2]), ids=_name)
def test_a_fault_is_found(fault: Fault) -> None:
    if _name(fault) in MISSED:
        pytest.skip(MISSED[_name(fault)])
    assert fault.found()


@pytest.mark.parametrize("name", ["kafka4-librdkafka-group", "kafka4-java-share-group"])
def test_a_script_without_a_fault_is_as_sound_as_its_capture(name: str) -> None:
    assert accused(judged(script_of(name))) == {}
