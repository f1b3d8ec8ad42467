"""The expert's list: ranks, details, and what its keys return."""

from __future__ import annotations

import pytest

from browse.panels.expert_panel import ExpertPanel, explanation_lines
from findings.public import findings
from findings.registry.finding_report import FindingReport, Headline
from findings.registry.ranked_finding import Rank, RankedFinding, Subjects
from tests.browse.panels.panel_host import HOSTILE, SHOWN_HOSTILE, opened, play, text
from tests.corpus import FOLDER

REPORT = findings(FOLDER / "demo.pcap")


@pytest.mark.thinned(4)
@pytest.mark.parametrize(
    ("key", "action"),
    [("enter", "go"), ("equals_sign", "filter"), ("E", "explain"), ("y", "copy")],
)
def test_keys_return_the_chosen_finding(key: str, action: str) -> None:
    async def scene() -> None:
        async with opened(ExpertPanel(REPORT), (120, 40)) as (app, pilot):
            assert "● breaks   3 OffsetCommit failed" in text(app)
            assert "filter: api == OffsetCommit and errors == UNKNOWN_TOPIC" in text(app)
            await pilot.press("down")
            await pilot.pause()
            assert "with it: Invalid topic name, 2 times" in text(app)
            await pilot.press("3", "down", key)
            await pilot.pause()
            (choice,) = app.results
            assert choice.action == action
            assert choice.finding.id == "error:FindCoordinator:COORDINATOR_NOT_AVAILABLE"

    play(scene)


def test_names_of_the_capture_are_escaped_and_an_empty_list_is_no_pass() -> None:
    hostile = RankedFinding(
        "error:X:Y", Rank.BREAKS, HOSTILE, 1, HOSTILE, Subjects((HOSTILE,)), filter=HOSTILE
    )
    report = FindingReport(Headline(exchanges=1), [hostile])

    async def scene() -> None:
        async with opened(ExpertPanel(report), (120, 24)) as (app, _):
            assert SHOWN_HOSTILE in text(app)
            assert text(app).replace("\n", "").isprintable()
        empty = FindingReport(Headline(lacks=["4 TLS connections not decrypted"], tls=4), [])
        async with opened(ExpertPanel(empty), (120, 24)) as (app, pilot):
            assert "not complete: 4 TLS connections not decrypted" in text(app)
            await pilot.press("enter", "escape")
            assert app.results == [None]

    play(scene)


def test_explanations_have_the_rule_the_advice_or_the_source() -> None:
    texts = {each.id: "\n".join(explanation_lines(each, 0)) for each in REPORT}
    assert "source" in texts["conformance:B18"]
    assert "enable.idempotence" in texts["advice:not-idempotent"]
    assert "10 times its median" in texts["slow:Produce"]
    topic = texts["error:Metadata:INVALID_TOPIC_EXCEPTION"]
    assert "A topic name has 1 to 249 of the characters" in topic
