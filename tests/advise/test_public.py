"""Advice from Python."""

from __future__ import annotations

from pathlib import Path

import pytest

import kafkashark
from dissector.errors import UsageError
from tests.corpus import CAPTURES

FOLDER = Path(__file__).parents[2] / "captures"
DEMO = FOLDER / "demo.pcap"


def test_advice_on_files_and_captures_is_the_same() -> None:
    by_name = kafkashark.advise(str(DEMO))
    assert isinstance(by_name, kafkashark.AdviceReport)
    assert by_name.passed
    assert [each.advice.id for each in by_name] == ["not-idempotent", "classic-group"]
    assert str(kafkashark.advise(kafkashark.open_capture(DEMO))) == str(by_name)
    assert repr(by_name) == f"<AdviceReport {'passed' if by_name.passed else 'failed'}: {by_name}>"
    assert "Advice" in by_name._repr_html_()


def test_thresholds_and_ranks_are_arguments() -> None:
    assert not kafkashark.advise(DEMO, limits={"tiny-batches.count": 1}, fail_on="risky").passed
    assert kafkashark.advise(DEMO, select="acks-0", fail_on="informs").passed
    with pytest.raises(UsageError, match="fail_on takes costly, risky, informs"):
        kafkashark.advise(DEMO, fail_on="all")
    with pytest.raises(UsageError, match="advise needs a capture"):
        kafkashark.advise()


def test_traffic_between_brokers_is_left_out() -> None:
    report = kafkashark.advise(FOLDER / "kafka39-three-nodes.pcap")
    whole = kafkashark.open_capture(FOLDER / "kafka39-three-nodes.pcap").exchanges()
    assert 0 < report.exchanges < len(whole) / 2


@pytest.mark.long
@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.name)
def test_captures_of_tests_have_no_producer_for_each_record(capture: Path) -> None:
    """A count of InitProducerId alone gives 27."""
    keylog = capture.with_name(capture.name.split(".pcap")[0] + ".keylog")
    report = kafkashark.advise(capture, keylogs=[keylog] if keylog.exists() else [])
    assert "producer-per-record" not in {each.advice.id for each in report}
