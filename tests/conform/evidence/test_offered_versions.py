"""API versions offered by brokers."""

from __future__ import annotations

from conform.evidence.observation import Observation
from conform.evidence.offered_versions import OfferedVersions, offered_versions_of
from conform.evidence.reporter import Reporter
from conform.registry.rank import Severity
from conform.registry.rule import Rule
from dissector.protocol.releases.kafka_releases import ranges_of, release_of
from tests.conform.scene import Scene

API_VERSIONS = 18
GOOD = {"api_key": API_VERSIONS, "min_version": 0, "max_version": 4}
ODD = {"api_key": 3, "min_version": 5, "max_version": 3}


def _offers(*answers: list[dict[str, int]], error_code: int = 0) -> list[OfferedVersions | None]:
    """Return the offers of consecutive ApiVersions responses."""
    seen = []

    def call(observation: Observation, reporter: Reporter) -> None:
        seen.append(offered_versions_of(observation))

    connection = Scene().connect()
    for number, keys in enumerate(answers):
        connection.request(API_VERSIONS, 2, number)
        connection.response(API_VERSIONS, 2, number, api_keys=keys, error_code=error_code)
    connection.scene.judge([Rule("F99", "t", Severity.NOTE, "s", "a.", "e", "exchange", (), call)])
    return seen


def test_ranges() -> None:
    (offer,) = _offers([GOOD])
    assert offer is not None
    assert offer.ranges == {API_VERSIONS: (0, 4)}
    assert offer.is_canonical


def test_non_canonical_offers() -> None:
    for keys in ([GOOD, ODD], [GOOD, GOOD], [ODD | {"min_version": 0}], []):
        (offer,) = _offers(keys)
        assert offer is not None
        assert not offer.is_canonical, keys


def test_an_error_offers_nothing() -> None:
    assert _offers([GOOD], error_code=35) == [None]


def test_equal_responses_are_read_once() -> None:
    first, repeated, other = _offers([GOOD], [GOOD], [GOOD | {"max_version": 3}])
    assert first is repeated
    assert first is not other


def test_releases_with_equal_offers() -> None:
    assert release_of(ranges_of("0.10.0")).startswith("Kafka 0.10.0")
    assert release_of({}) == ""
    assert release_of({API_VERSIONS: (0, 99)}) == ""
    assert OfferedVersions(ranges_of("4.3"), True).release == "Kafka 4.3"
