"""The best matching release of a broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from dissector import dissect
from dissector.protocol.releases.kafka_release_table import RELEASES
from dissector.protocol.releases.kafka_releases import best_match, differences, ranges_of

CAPTURES = Path(__file__).parents[4] / "captures"


@pytest.mark.parametrize("release", RELEASES)
def test_each_release_is_its_own_best_match(release: str) -> None:
    match = best_match(ranges_of(release))
    assert release in match.releases
    assert match.is_exact
    assert match.differences == ()


def test_ranges_apply_until_the_next_change() -> None:
    assert ranges_of("0.8.0") == {0: (0, 0), 1: (0, 0), 2: (0, 0), 3: (0, 0)}
    assert ranges_of("3.9")[1] == (0, 17)
    assert ranges_of("4.0")[1] == (4, 17)
    assert 4 in ranges_of("3.9")
    assert 4 not in ranges_of("4.0")


def _recorded(name: str) -> dict[int, tuple[int, int]]:
    for exchange in dissect(str(CAPTURES / name)):
        body = exchange.response.body if exchange.response else None
        if exchange.api_key == 18 and body is not None and not body.error_code:
            return {each.api_key: (each.min_version, each.max_version) for each in body.api_keys}
    raise AssertionError("nobody asked for the versions")


@pytest.mark.parametrize(
    ("capture", "release"),
    [
        ("kafka39-librdkafka-group.pcap", "3.9"),
        ("kafka39-sweep-zookeeper.pcap", "3.9"),
        ("kafka4-librdkafka-group.pcap", "4.3"),
        ("kafka44-java-clients.pcap", "4.4"),
        ("kafka40-sweep-share.pcap", "4.0"),
    ],
)
def test_recorded_brokers_match_their_release(capture: str, release: str) -> None:
    match = best_match(_recorded(capture))
    assert match.releases == (release,)
    assert match.is_exact


def test_a_range_outside_all_releases_is_a_difference() -> None:
    offered = {**ranges_of("4.3"), 0: (3, 13)}
    match = best_match(offered)
    assert match.releases == ("4.3",)
    assert not match.is_exact
    assert [str(each) for each in match.differences] == ["Produce: offers v3-13, the release v0-13"]


def test_a_broker_with_few_apis_matches_their_release() -> None:
    offered = {key: bounds for key, bounds in ranges_of("2.4").items() if key in (0, 1, 2, 3, 18)}
    match = best_match(offered)
    assert "2.4" in match.releases
    assert {each.offered for each in match.differences} == {None}


def test_settings_explain_missing_apis_but_not_ranges() -> None:
    offered = dict(ranges_of("4.3"))
    del offered[76]
    (gone,) = differences(offered, "4.3")
    assert gone.is_by_setting
    (other,) = differences({**ranges_of("4.3"), 76: (0, 3)}, "4.3")
    assert not other.is_by_setting
