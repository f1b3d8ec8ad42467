"""Services of six clients run as documented, and nothing costly is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from advise.public import advise
from dissector.public import dissect
from tests.broker.advise.well_behaved.__main__ import CLIENTS, run
from tests.broker.artifacts import MissingError

pytestmark = pytest.mark.broker


def test_well_behaved_services_have_no_costly_finding(tmp_path: Path) -> None:
    path = tmp_path / "services.pcapng"
    try:
        run(20, path)
    except (MissingError, FileNotFoundError) as missing:
        pytest.skip(str(missing))
    report = advise(path)
    assert report.passed, [f"{each.subject}: {each.found}" for each in report]
    served = {each.client_id for each in dissect(str(path))}
    assert {f"{name}-{role}" for name in CLIENTS for role in ("producer", "consumer")} <= served
