"""API versions removed by releases."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dissector.protocol.apis import all_apis
from dissector.protocol.releases.kafka_release_table import RELEASES
from dissector.protocol.releases.kafka_releases import ranges_of
from dissector.protocol.releases.removals import (
    INTERNAL_APIS,
    check_release,
    is_spoken,
    kips_of,
    removed_in,
    spoken_by,
)

PIPELINE = Path(__file__).parents[4] / "docs" / "pipeline.md"
PRODUCE, FETCH, JOIN_GROUP, SHARE_FETCH = 0, 1, 11, 78


def test_versions_that_kafka_4_removed() -> None:
    """Source: KIP-896, table of APIs; the same list as in docs/pipeline.md."""
    lowest = {name: int(n) for name, n in re.findall(r"\('(\w+)', (\d)\)", PIPELINE.read_text())}
    lowest.pop("WriteTxnMarkers")  # between brokers
    found = {
        each.name: spoken_by("4.0")[each.key][0]
        for each in all_apis()
        if each.key not in INTERNAL_APIS and removed_in(each.key, 0, "4.0")
    }
    assert found == lowest


def test_brokers_refuse_offered_produce_versions() -> None:
    assert ranges_of("4.4")[PRODUCE][0] == 0
    assert not is_spoken(PRODUCE, 2, "4.0")
    assert is_spoken(PRODUCE, 3, "4.0")
    assert is_spoken(PRODUCE, 0, "3.9")


@pytest.mark.parametrize("release", RELEASES)
def test_supported_versions_are_not_removed(release: str) -> None:
    for key, (lowest, highest) in spoken_by(release).items():
        assert removed_in(key, lowest, release) is None
        assert removed_in(key, highest, release) is None
        assert removed_in(key, highest + 1, release) is None


def test_a_removed_version_may_return() -> None:
    """JoinGroup v0 and v1 were removed in 4.0 and returned in 4.1."""
    assert removed_in(JOIN_GROUP, 0, "4.0") == "4.0"
    assert removed_in(JOIN_GROUP, 0, "4.1") is None


def test_removals_and_their_kips() -> None:
    assert (removed_in(FETCH, 3, "4.4"), kips_of(FETCH, 3)) == ("4.0", ("KIP-896", "KIP-724"))
    assert (removed_in(2, 0, "4.4"), kips_of(2, 0)) == ("4.0", ("KIP-896",))
    assert (removed_in(SHARE_FETCH, 0, "4.4"), kips_of(SHARE_FETCH, 0)) == ("4.1", ("KIP-932",))
    assert removed_in(FETCH, 3, "3.9") is None


def test_every_removal_has_a_kip_of_its_release() -> None:
    kips = {"4.0": {"KIP-896", "KIP-724"}, "4.1": {"KIP-932"}}
    for key in spoken_by("4.4"):
        for version in range(20):
            release = removed_in(key, version, "4.4")
            assert release is None or set(kips_of(key, version)) <= kips[release]


def test_names_of_releases() -> None:
    assert check_release("4.4") == check_release("4.4.0") == "4.4"
    assert check_release("0.10.2.1") == "0.10.2"
    assert check_release("0.9.0.1") == "0.9"
    assert check_release("v4.4.0") == check_release("latest") == "4.4"
    assert check_release("5.0") is None
    assert check_release("4") is None
