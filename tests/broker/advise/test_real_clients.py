"""Each advice is found in bad programs of real clients at real brokers, and not in mended ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from advise.catalogue import ADVICES
from advise.registry.advice import Rank
from tests.broker.advise.plans import CLIENTS, PLANS, sides
from tests.broker.advise.prepared_clusters import NEWEST, OLDER, prepare
from tests.broker.advise.recorded_programs import findings
from tests.broker.artifacts import MissingError
from tests.broker.conftest import StartCluster
from tests.broker.server_properties import Shape

pytestmark = pytest.mark.broker


def test_each_advice_has_programs() -> None:
    assert PLANS.keys() == ADVICES.keys()


@pytest.mark.parametrize("shape", [NEWEST, OLDER], ids=["newest", "older"])
@pytest.mark.parametrize("client", CLIENTS)
def test_bad_programs_are_found_and_mended_ones_are_not(
    kafka: StartCluster, tmp_path: Path, client: str, shape: Shape
) -> None:
    """With one set of thresholds; mended programs have no other finding that is costly, too."""
    cluster = kafka(shape)
    prepare(cluster, client, tmp_path)
    try:
        found = findings(cluster, client, tmp_path)
    except MissingError as missing:
        pytest.skip(str(missing))
    wrong = []
    for advice, name, side in sides():
        plan, subject = PLANS[advice], f"{client}.{advice}.{name}"
        if plan.version != shape.version:
            continue
        if client in side.impossible:
            print(f"{subject}: not run: {side.impossible[client]}")
            continue
        mine = {
            each.advice.id: each
            for each in found
            if subject in (each.subject.client_id, each.subject.topic, each.subject.group)
        }
        costly = [each.advice.id for each in mine.values() if each.advice.rank is Rank.COSTLY]
        if name == "mended" and (costly or advice in mine):
            wrong.append(f"{subject}: found {costly or advice}")
        elif name == "bad" and advice not in mine:
            wrong.append(f"{subject}: not found")
        elif name == "bad" and getattr(mine[advice].subject, plan.subject) != subject:
            wrong.append(f"{subject}: the subject is {mine[advice].subject}")
    assert not wrong, "\n".join(wrong)
