"""Captures are split by connection for several processes."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.errors import UsageError
from replay.order.read_write_sets import read_write_sets_of
from replay.plan.capture_part import order_within
from replay.plan.part_split import dependent_connections, split_connections
from replay.plan.plan import Plan
from tests.replay.support.replay_captures import SHIPPED

CAPTURES = (
    "demo.pcap",
    "kafka4-librdkafka-acks.pcap",
    "librdkafka-transactions.pcap",
    "kafka4-static-members.pcap",
)


def _parts(name: str, count: int) -> list[Plan]:
    return [Plan.of(SHIPPED / name, part=f"{number}/{count}") for number in range(1, count + 1)]


@pytest.mark.thinned(4)
@pytest.mark.parametrize("name", CAPTURES)
def test_each_request_is_in_one_part_with_its_number(name: str) -> None:
    with Plan.of(SHIPPED / name) as whole:
        parts = _parts(name, 3)
        numbers = [step.number for part in parts for step in part]
        assert sorted(numbers) == list(range(len(whole)))
        assert sum(map(len, parts)) == len(whole) == parts[0].size
        assert sum((part.left_out for part in parts), Counter()) == whole.left_out
        assert [len(list(part)) for part in parts] == [len(part) for part in parts]
        connections = [each for part in parts for each in part.connections]
        assert sorted(connections) == sorted(whole.connections)
        for part in parts:
            for step in part:
                assert step.captured.request == whole.step(step.number).captured.request
            part.close()


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", [each for each in CAPTURES if "acks" not in each])
def test_members_and_producers_are_in_one_part(name: str) -> None:
    """Ids, sequences and generations are known only to the process that receives them."""
    parts_of = defaultdict(set)
    for part in _parts(name, 4):
        for step in part:
            sets = read_write_sets_of(
                step.captured.request_message(), step.captured.response_message()
            )
            united = {each for each in sets.writes if each[0] in ("group", "transactional_id")}
            united |= {each for each in sets.reads | sets.writes if each[0] == "producer"}
            for resource in united if not step.left_out else ():
                parts_of[resource].add(str(part.part))
        part.close()
    assert parts_of
    assert {len(parts) for parts in parts_of.values()} == {1}


def test_no_step_depends_on_another_part() -> None:
    for part in _parts("demo.pcap", 3):
        own = set(part.numbers())
        assert all(own.issuperset(step.after) for step in part)
        assert any(step.after for step in part)
        part.close()


def test_order_via_steps_of_other_parts_is_preserved() -> None:
    """Steps 0 to 3 write to one log in turn: 3 comes after 0, by way of 2."""
    connections, elsewhere = [7, 8, 8, 9], [0, 1, 1, 0]
    causes, ends = array("i", [0, 2]), array("q", [0, 0, 1, 1, 2])
    assert order_within(connections, elsewhere, causes, ends) == (
        array("i", [0]),
        array("q", [0, 0, 0, 0, 1]),
    )


@given(st.data())
def test_dependencies_within_a_part_follow_from_the_whole(data: st.DataObject) -> None:
    """All dependencies are on earlier own steps; direct ones remain."""
    size = data.draw(st.integers(1, 30))
    connections = data.draw(st.lists(st.integers(0, 5), min_size=size, max_size=size))
    elsewhere = [int(connection > 2) for connection in connections]
    causes, ends, direct = array("i"), array("q", [0]), []
    for step in range(size):
        found = sorted(
            data.draw(st.sets(st.integers(0, step - 1), max_size=4) if step else st.just(set()))
        )
        causes.extend(found)
        ends.append(len(causes))
        direct.append(found)
    after, after_ends = order_within(connections, elsewhere, causes, ends)
    for step in range(size):
        found = after[after_ends[step] : after_ends[step + 1]]
        assert all(each < step and not elsewhere[each] for each in found)
        if elsewhere[step]:
            assert not found
        else:
            assert {each for each in direct[step] if not elsewhere[each]} <= set(found)


def test_parts_are_of_about_the_same_size_and_keep_dependents_together() -> None:
    sizes = dict.fromkeys(range(12), 10)
    united = [[0, 1, 2], [2, 3]]
    dependent = Counter({(4, 5): 9, (6, 7): 9, (8, 9): 1, (5, 6): 1})
    found = split_connections(sizes, united, dependent, 3)
    assert found.keys() == sizes.keys()
    assert Counter(found.values()) == {0: 4, 1: 4, 2: 4}
    assert len({found[number] for number in range(4)}) == 1
    assert found[4] == found[5]
    assert found[6] == found[7]
    assert split_connections(sizes, united, dependent, 3) == found


def test_indivisible_captures_leave_parts_empty() -> None:
    assert set(split_connections({0: 5, 1: 5}, [[0, 1]], Counter(), 4).values()) == {0}
    assert split_connections({}, [], Counter(), 2) == {}


def test_dependencies_between_connections_are_counted() -> None:
    connections = np.array([1, 2, 2, 1], np.int64)
    causes, ends = array("i", [0, 0, 1, 2]), array("q", [0, 0, 1, 3, 4])
    assert dependent_connections(connections, causes, ends) == {(2, 1): 2, (1, 2): 1}


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "1/0", "a/b", "1/2/3", "-1/2", " 1/2"])
def test_a_nonexistent_part_is_an_error(text: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--part takes I/N"):
        Plan.of(SHIPPED / "demo.pcap", part=text)
