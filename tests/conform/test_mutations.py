"""Damage to a capture adds no findings."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conform.report.report_formats import verdict_check
from dissector.cli.declared.check_options import FORMATS
from tests.conform.mutations import (
    MUTATIONS,
    file_of,
    findings_of,
    judged,
    judged_file,
    packets_of,
    spoil,
    with_odd_fields,
)
from tests.corpus import fast_and_long
from tests.example_counts import examples

CAPTURES = sorted((Path(__file__).parents[2] / "captures").glob("*.pcap"))


@cache
def _whole(path: Path) -> frozenset[str]:
    return frozenset(findings_of(judged(path.read_bytes())))


@pytest.mark.long
@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.too_slow])
@given(
    path=st.sampled_from(CAPTURES),
    mutations=st.lists(st.sampled_from(MUTATIONS), min_size=1, max_size=2, unique=True),
    seed=st.integers(0, 2**32),
)
def test_damage_adds_no_findings(path: Path, mutations: list, seed: int) -> None:
    head, packets = packets_of(path)
    random = Random(seed)
    for mutation in mutations:
        packets = mutation(packets, random) or packets[:1]
    assert findings_of(judged(file_of(head, packets))) <= _whole(path)


@pytest.mark.long
@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.too_slow])
@given(path=st.sampled_from(CAPTURES), seed=st.integers(0, 2**32))
def test_arbitrary_bytes_raise_no_error(path: Path, seed: int) -> None:
    head, packets = packets_of(path)
    verdict = judged(file_of(head, spoil(packets, Random(seed))))
    for form in FORMATS:
        assert list(verdict_check(verdict, "it").lines(form))


@pytest.mark.parametrize("mutation", [*MUTATIONS, spoil], ids=lambda it: it.__name__)
def test_each_mutation_changes_the_capture(mutation) -> None:
    head, packets = packets_of(CAPTURES[0])
    assert any(mutation(packets, Random(seed)) != packets for seed in range(9))
    assert file_of(head, packets) == CAPTURES[0].read_bytes()


SMALL = [path for path in CAPTURES if path.stat().st_size < 60_000]


@pytest.mark.parametrize("seed", fast_and_long(range(4), range(4, 48)))
def test_rules_accept_any_value_of_a_field(seed: int) -> None:
    random = Random(seed)
    path = random.choice(SMALL)
    verdict = judged(with_odd_fields(path, random))
    for form in FORMATS:
        assert list(verdict_check(verdict, "it").lines(form))


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("crash-produce-null-topic.pcap", "E09"),
        ("crash-fuzz.pcap", "E09"),
        ("crash-conform-transactional-id.pcap", "F02"),
    ],
)
def test_captures_that_once_raised_an_error(name: str, rule: str) -> None:
    path = Path(__file__).parents[3] / "shared" / "repro" / name
    if not path.exists():
        pytest.skip(f"{name} is not here")
    verdict = judged_file(path)
    assert not verdict.faults
    assert verdict.tallies[rule].broken
