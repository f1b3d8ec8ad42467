"""Each advice is found in a program that it is about, and not in the mended one."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from advise.catalogue import ADVICES
from advise.detectors import DETECTORS
from advise.public import advise
from advise.registry.advice_report import AdviceFinding
from tests import tcp_captures
from tests.advise.advised_programs import BAD, BAD_TOO, BY_TOPIC_ID, MENDED, Program


def found_in(program: Program, folder: Path, advice: str) -> list[AdviceFinding]:
    path = tcp_captures.write(folder / "scene.pcap", program().wire.packets)
    return list(advise(path, select=advice))


@pytest.mark.parametrize("advice", sorted(ADVICES))
def test_bad_programs_are_found_and_mended_ones_are_not(advice: str, tmp_path: Path) -> None:
    (found,) = found_in(BAD[advice], tmp_path, advice)
    assert found.advice.id == advice
    assert found.packets
    assert found.begin_ns <= found.end_ns
    assert str(found.subject)
    assert found_in(MENDED[advice], tmp_path, advice) == []


@pytest.mark.parametrize("advice", sorted(BAD_TOO))
def test_other_forms_of_a_mistake_are_found(advice: str, tmp_path: Path) -> None:
    (found,) = found_in(BAD_TOO[advice], tmp_path, advice)
    assert found.packets


@pytest.mark.parametrize("advice", sorted(BY_TOPIC_ID))
def test_bad_programs_that_name_topics_by_id_are_found(advice: str, tmp_path: Path) -> None:
    (found,) = found_in(BY_TOPIC_ID[advice], tmp_path, advice)
    assert str(found.subject) == f"topic {UUID(int=7)}"


def test_each_advice_has_a_detector() -> None:
    assert DETECTORS.keys() == ADVICES.keys()
