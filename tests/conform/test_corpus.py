"""Real traffic: Apache Kafka and its clients break no rule, and each warning is explained."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from conform.judge import Judge
from conform.registry.rank import Severity
from conform.registry.verdict import Verdict
from dissector import open_capture
from tests import corpus
from tests.conform.explained_captures import CLIENTS, FAULTS, MOCK
from tests.conform.mutations import key_of
from tests.conform.scene import MEASURED, capture_rules

CAPTURES = [path for path in corpus.CAPTURES if path.stat().st_size < 1_000_000]
OF_MOCK = [
    path for path in CAPTURES if path.name.startswith(("librdkafka-", "aiokafka-", "kafka-"))
]
OF_SERIALIZERS = sorted((corpus.FOLDER / "values").glob("*.pcap"))
"""With the HTTP exchanges of their registries."""
OF_KAFKA = [path for path in CAPTURES if path not in OF_MOCK]


@cache
def _verdict(path: Path) -> Verdict:
    verdict = Judge(capture_rules(), MEASURED).judge_capture(open_capture(path))
    assert verdict.faults == {}
    return verdict


def _found(path: Path) -> set[str]:
    return {key_of(kind.first) for kind in _verdict(path) if _matters(kind.first.severity)}


def _matters(severity: Severity) -> bool:
    return severity is not Severity.NOTE


def _each(paths: list[Path]) -> Any:
    """Return the parameters of a test: some captures in `make test`, all in long runs."""
    short = corpus.fast("verdicts")
    marks = {path: () if path in short else pytest.mark.long for path in paths}
    chosen = [pytest.param(path, id=path.name, marks=mark) for path, mark in marks.items()]
    return pytest.mark.parametrize("path", chosen)


@pytest.mark.thinned(2)
@_each(OF_KAFKA)
def test_kafka_and_its_clients_break_no_rule(path: Path) -> None:
    errors = [k.first for k in _verdict(path) if k.first.severity is Severity.ERROR]
    assert [each for each in errors if key_of(each) not in FAULTS] == []
    assert _found(path) <= CLIENTS.keys() | FAULTS.keys()


@_each(OF_MOCK)
def test_violations_of_the_mock_cluster_are_explained(path: Path) -> None:
    assert _found(path) <= MOCK.keys()


@pytest.mark.long
def test_each_explained_violation_occurs() -> None:
    assert CLIENTS.keys() | FAULTS.keys() == set().union(*map(_found, OF_KAFKA))
    assert MOCK.keys() == set().union(*map(_found, OF_MOCK))


@pytest.mark.long
def test_the_captures_have_evidence_for_most_rules() -> None:
    judged = {
        name
        for path in (*CAPTURES, *OF_SERIALIZERS)
        for name, tally in _verdict(path).tallies.items()
        if tally.judged
    }
    assert {rule.id for rule in capture_rules()} - judged <= {"F06", "G09", "S02"}


@pytest.mark.parametrize("path", OF_SERIALIZERS, ids=lambda path: path.stem)
def test_values_are_judged_by_the_registry_that_a_capture_has(path: Path) -> None:
    tallies = {name: each for name, each in _verdict(path).tallies.items() if name[0] == "D"}
    assert all(each.judged and not each.broken for each in tallies.values()), tallies
