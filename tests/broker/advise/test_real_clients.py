"""Each advice is found in bad programs of real clients at real brokers, and not in mended ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from advise.catalogue import ADVICES
from advise.registry.advice import Rank
from advise.registry.advice_report import AdviceFinding
from tests.broker.advise.plans import CLIENTS, PLANS, sides
from tests.broker.advise.prepared_clusters import NEWEST, OLDER, prepare
from tests.broker.advise.recorded_programs import ProgramError, findings
from tests.broker.artifacts import MissingError
from tests.broker.conftest import StartCluster
from tests.broker.server_properties import Shape

pytestmark = [pytest.mark.broker, pytest.mark.timeout(900)]

ATTEMPTS = 3


def test_each_advice_has_programs() -> None:
    assert PLANS.keys() == ADVICES.keys()


@pytest.mark.parametrize("shape", [NEWEST, OLDER], ids=["newest", "older"])
@pytest.mark.parametrize("client", CLIENTS)
def test_bad_programs_are_found_and_mended_ones_are_not(
    kafka: StartCluster, tmp_path: Path, client: str, shape: Shape
) -> None:
    """
    With one set of thresholds; mended programs have no other finding that is costly, too.

    A busy machine makes mistakes of its own: members expire, batches fill while a thread waits. So
    programs whose findings are wrong run again, with few others beside them.
    """
    cluster = kafka(shape)
    prepare(cluster, client, tmp_path)
    programs = set()
    for advice, name, side in sides():
        if PLANS[advice].version != shape.version:
            continue
        if client in side.impossible:
            print(f"{client}.{advice}.{name}: not run: {side.impossible[client]}")
        else:
            programs.add((advice, name))
    for attempt in range(ATTEMPTS):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        try:
            found = findings(cluster, client, programs, folder)
            wrong = {each: why for each in programs if (why := _wrong(client, *each, found))}
        except MissingError as missing:
            pytest.skip(str(missing))
        except ProgramError as error:
            wrong = dict.fromkeys(programs, str(error))
        programs = set(wrong)
        if not wrong:
            break
        print(*set(wrong.values()), sep="\n")
    assert not wrong


def _wrong(client: str, advice: str, name: str, found: list[AdviceFinding]) -> str:
    """Return what is wrong with the findings on a program, or nothing."""
    plan, subject = PLANS[advice], f"{client}.{advice}.{name}"
    mine = {
        each.advice.id: each
        for each in found
        if subject in (each.subject.client_id, each.subject.topic, each.subject.group)
    }
    costly = [each.advice.id for each in mine.values() if each.advice.rank is Rank.COSTLY]
    if name == "mended":
        return f"{subject}: found {costly or advice}" if costly or advice in mine else ""
    if advice not in mine:
        return f"{subject}: not found"
    if getattr(mine[advice].subject, plan.subject) != subject:
        return f"{subject}: the subject is {mine[advice].subject}"
    return ""
