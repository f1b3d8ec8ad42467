"""The lag of groups over time is that of the offsets and high watermarks known at each time."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator

import pytest

from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.reading.capture import Capture, Options, Window
from dissector.summary.group_lag import GroupLags
from dissector.summary.groups_reader import GroupsReader
from tests.corpus import FOLDER
from tests.dissector.summary.test_groups import END_TXN, ORDERS_ID, TXN_COMMIT, Coordinator
from tests.tcp_captures import pcap_file

Point = tuple[str, int, int, int]
"""Group and partition, time, lag, and lag of the group."""


def points(capture: Capture, *, gleaning: bool = True) -> Iterator[Point]:
    """Yield the changes in a capture."""
    lags = GroupLags()
    for window in capture.windows(gleaning=gleaning):
        capture.known_of(window)

        def exchange(row: int, window: Window = window) -> Exchange:
            assert capture.reading is not None
            return capture.reading.exchange(window.exchanges, row, capture.names)

        found = lags.read(window.exchanges, exchange, capture.names.name)
        columns = (found.place, found.time_ns, found.lag, found.total)
        for number, *rest in zip(*(each.tolist() for each in columns), strict=True):
            place = lags.places[number]
            yield f"{place.group} {place.topic} {place.partition}", *rest


def response_ns(play: Coordinator) -> int:
    """Return the time of the last response."""
    return max(each.time_ns for each in play.wire.packets if each.payload)


class Play(Coordinator):
    """Commits and fetches of two groups, with the expected changes of lag."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.expected: list[Point] = []
        self._ends: dict[int, int] = {}
        self._offsets: dict[tuple[str, int], int] = {}
        self._lags: dict[tuple[str, int], int] = {}
        chance = random.Random(seed)
        for step in range(60):
            partition, offset = chance.randrange(3), 10 * step + chance.randrange(30)
            if chance.random() < 0.5:
                self.fetch(partition, offset)
                self._ends[partition] = offset
            else:
                group = chance.choice(["billing", "audit"])
                self.commit_of(group, partition, offset)
                self._offsets[group, partition] = offset
            self._expect()

    def commit_of(self, group: str, partition: int, offset: int) -> None:
        asked = {"partition_index": partition, "committed_offset": offset}
        topics = [{"name": "orders", "partitions": [asked]}]
        answered = [{"name": "orders", "partitions": [{"partition_index": partition}]}]
        self.exchange(8, 7, {"group_id": group, "topics": topics}, {"topics": answered})

    def _expect(self) -> None:
        for (group, partition), offset in self._offsets.items():
            end = self._ends.get(partition)
            if end is None:
                continue
            lag = max(0, end - offset)
            if self._lags.get((group, partition)) != lag:
                self._lags[group, partition] = lag
                total = sum(each for (other, _), each in self._lags.items() if other == group)
                point = f"{group} orders {partition}", response_ns(self), lag, total
                self.expected.append(point)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("window_bytes", [500, 1 << 20])
def test_each_change(seed: int, window_bytes: int) -> None:
    play = Play(seed)
    data = io.BytesIO(pcap_file(play.wire.packets))
    found = points(Capture(["-"], Options(stdin=data, window_bytes=window_bytes)))
    assert sorted(found) == sorted(play.expected)
    assert play.expected


def test_offsets_in_a_transaction_count_when_it_is_committed() -> None:
    play = Coordinator()
    play.fetch(0, 50)
    for offset, committed in ((10, False), (40, True)):
        asked = {"partition_index": 0, "committed_offset": offset}
        play.exchange(
            TXN_COMMIT,
            0,
            {
                "transactional_id": "tx",
                "group_id": "billing",
                "topics": [{"name": "orders", "partitions": [asked]}],
            },
            {"topics": [{"name": "orders", "partitions": [{"partition_index": 0}]}]},
        )
        play.exchange(END_TXN, 0, {"transactional_id": "tx", "committed": committed}, {})
    data = io.BytesIO(pcap_file(play.wire.packets))
    ((_, time_ns, *lag),) = points(Capture(["-"], Options(stdin=data)))
    assert (time_ns, lag) == (response_ns(play), [10, 10])


@pytest.mark.parametrize(
    "name",
    [
        "demo.pcap",
        "kafka44-java-clients.pcap",
        "kafka4-librdkafka-group.pcap",
        "kafka4-streams.pcap",
    ],
)
def test_the_last_lag_is_that_of_the_groups(name: str) -> None:
    lags, totals = {}, {}
    for place, _, lag, total in points(Capture([str(FOLDER / name)])):
        lags[place], totals[place.partition(" ")[0]] = lag, total
    capture = Capture([str(FOLDER / name)])
    reader = GroupsReader(capture)
    for window in capture.windows(gleaning=True):
        reader.add(window)
    report = reader.sections()
    shown = {
        f"{row['group']} {row['topic']} {row['partition']}": row["lag"]
        for row in report["partitions"]
        if row["lag"] is not None
    }
    assert {place: lag for place, lag in lags.items() if lag >= 0} == shown != {}
    assert totals == {
        row["group"]: row["lag"] for row in report["groups"] if row["group"] in totals
    }


def test_a_topic_id_named_later_keeps_its_lag() -> None:
    play = Coordinator()
    place = {"partition_index": 0}
    ids = {"topic_id": ORDERS_ID}

    def commit(offset: int) -> None:
        asked = {**ids, "partitions": [{**place, "committed_offset": offset}]}
        answered = {**ids, "partitions": [place]}
        play.exchange(8, 10, {"group_id": "billing", "topics": [asked]}, {"topics": [answered]})

    play.exchange(
        1, 13, {}, {"responses": [{**ids, "partitions": [{**place, "high_watermark": 50}]}]}
    )
    commit(10)
    play.exchange(3, 12, {}, {"topics": [{**ids, "name": "orders"}]})
    commit(30)
    data = io.BytesIO(pcap_file(play.wire.packets))
    found = list(points(Capture(["-"], Options(stdin=data, window_bytes=200)), gleaning=False))
    assert [(lag, total) for _, _, lag, total in found] == [(40, 40), (20, 20)]
    assert found[-1][0] == "billing orders 0"
