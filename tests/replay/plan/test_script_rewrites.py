"""Requests that hooks rewrite or leave out, through `Plan.of` and the command."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from dissector.cli import main
from dissector.protocol.messages import decode_request
from dissector.public import open_capture
from replay import Plan, replay
from replay.model.outcome import Verdict

ROOT = Path(__file__).parents[3]
DEMO = ROOT / "captures" / "demo.pcap"
PAGE = (ROOT / "docs" / "hooks.md").read_text(encoding="utf-8")


def apis_and_acks(plan: Plan) -> tuple[Counter[str], set[int]]:
    """Return the number of requests by API, and the acks of Produce requests."""
    sent = [decode_request(step.captured.request) for step in plan if not step.left_out]
    acks = {each.body.acks for each in sent if each.api == "Produce" and each.body is not None}
    return Counter(each.api or "" for each in sent), acks


def test_the_script_of_the_page_changes_what_is_sent(tmp_path: Path) -> None:
    path = tmp_path / "durable.py"
    (code,) = re.findall(r"```python\n# durable\.py\n(.*?)```", PAGE, re.DOTALL)
    path.write_text(code.replace('"probe-"', '"billing-"').replace("= -1", "= 1"))
    with Plan.of(DEMO) as plan:
        before, _ = apis_and_acks(plan)
    with Plan.of(DEMO, scripts=[path]) as plan:
        after, acks = apis_and_acks(plan)
        left_out = plan.left_out[f"{path} leaves it out"]
    assert acks == {1}
    assert left_out >= (before - after).total() > 0
    assert not after - before
    with Plan.of(open_capture(DEMO, scripts=[path])) as plan:
        assert apis_and_acks(plan) == (after, acks)


def test_a_failing_hook_leaves_its_requests_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "failing.py"
    path.write_text(
        "def rewrite(request):\n"
        "    if request.api == 'Fetch':\n"
        "        request.body.missing.wait = 1\n"
        "    if request.api == 'Produce':\n"
        "        request.body.acks = 'all'\n"
        "    if request.api == 'Metadata':\n"
        "        return request._replace(client_id='other')\n"
        "    return request\n"
    )
    with Plan.of(DEMO) as plan:
        before, _ = apis_and_acks(plan)
    with Plan.of(DEMO, scripts=[path]) as plan:
        after, _ = apis_and_acks(plan)
        reasons = {each: count for each, count in plan.left_out.items() if str(path) in each}
    assert before - after == Counter(
        {name: before[name] for name in ("Fetch", "Produce", "Metadata")}
    )
    lines = {f"{path}, line 3: AttributeError", f"{path} changes more than the body"}
    assert lines < reasons.keys()
    (built,) = reasons.keys() - lines
    assert built.startswith(f"{path}: its body can't be built: ")
    assert sum(reasons.values()) == (before - after).total()
    assert main(["replay", str(DEMO), "--dry-run", "--script", str(path)]) in (0, 1)
    assert f"{path}, line 3: AttributeError" in capsys.readouterr().out


def test_responses_are_awaited_as_the_rewritten_acks_say(tmp_path: Path) -> None:
    path = tmp_path / "acks.py"
    expected = {}
    for acks in (0, 1):
        path = tmp_path / f"acks_{acks}.py"
        path.write_text(
            "def rewrite(request):\n"
            "    if request.api == 'Produce':\n"
            f"        request.body.acks = {acks}\n"
            "    return request\n"
        )
        with Plan.of(DEMO, scripts=[path], filter="api == Produce") as plan:
            expected[acks] = {each.captured.expects_response for each in plan}
            report = replay(plan, "mock", create_topics=True)
        assert report.verdicts.get(Verdict.MISSING, 0) == 0, report
    assert expected == {0: {False}, 1: {True}}
