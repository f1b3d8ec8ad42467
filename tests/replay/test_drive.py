"""A replay from the connection to the report."""

from __future__ import annotations

import asyncio
from pathlib import Path

from replay.drive import _drive
from replay.pace import Pace
from replay.plan import Plan
from replay.report import Report
from replay.setting import Setting
from replay.stage import Manner
from tests.replay.captures import left_open
from tests.replay.scripted import Answers, alone, scripted


def at_script(path: str, answers: Answers) -> Report:
    async def main() -> Report:
        ports: list[int] = []
        async with scripted({**alone(ports), **answers}) as broker:
            ports.append(broker.port)
            setting = Setting(f"127.0.0.1:{broker.port}", manner=Manner(Pace(0), timeout_s=60))
            with Plan.of(path) as plan:
                return await _drive(plan, setting, [setting.to], None)

    return asyncio.run(main())


def test_what_is_left_behind_is_in_the_report(tmp_path: Path) -> None:
    began = {"producer_id": 9, "producer_epoch": 0}
    given = [began, {"error_code": 53}]
    report = at_script(
        left_open(tmp_path),
        {"InitProducerId": lambda _: given.pop(0), "AddPartitionsToTxn": lambda _: {}},
    )
    (left,) = report.remains
    assert "'t'" in left
    assert "TRANSACTIONAL_ID_AUTHORIZATION_FAILED" in left
    assert not report.ended
