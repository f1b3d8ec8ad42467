"""Topics of the target, at scripted brokers."""

from __future__ import annotations

import pytest

from cluster.client.cluster import Cluster
from cluster.client.topic_admin import EARLIEST, LATEST, create_topics, offsets
from dissector.errors import ReplayError
from tests.cluster.client.test_cluster import ScriptedTarget, with_cluster
from tests.replay.support.scripted_broker import offers


def test_missing_topics_are_created() -> None:
    async def do(cluster: Cluster) -> None:
        assert await create_topics(cluster, {"orders": 9, "new": 3}) == ["new"]
        assert target.created == {"new": -1}
        assert len(cluster.topics["new"].leaders) == 3
        assert await create_topics(cluster, {"new": 3}) == []
        with pytest.raises(ReplayError, match="topic 'bad' cannot be created: said why"):
            await create_topics(cluster, {"bad": 1})

    target = ScriptedTarget()
    target.controller = 2
    with_cluster(target, do)


@pytest.mark.parametrize(("places_itself", "leaders"), [(False, [2, 1, 2]), (True, [1, 1, 1])])
def test_topics_are_led_as_wanted_where_the_target_allows(
    places_itself: bool, leaders: list[int]
) -> None:
    async def do(cluster: Cluster) -> None:
        replicas = {"new": [[2, 1], [1, 2], [2, 1]], "elsewhere": [[9]]}
        assert await create_topics(cluster, {"new": 3}, replicas) == ["new"]
        assert target.leaders["new"] == leaders

    target = ScriptedTarget()
    target.places_itself = places_itself
    with_cluster(target, do)


def test_no_topic_is_created_for_a_partition_number_of_a_damaged_message() -> None:
    async def do(cluster: Cluster) -> None:
        with pytest.raises(ReplayError, match=r"'new' is not created: .* partition 2147483647"):
            await create_topics(cluster, {"new": 2**31})
        assert target.created == {}

    target = ScriptedTarget()
    target.controller = 2
    with_cluster(target, do)


def test_old_brokers_get_an_explicit_replication_factor() -> None:
    async def do(cluster: Cluster) -> None:
        await create_topics(cluster, {"new": 1})
        assert target.created == {"new": 1}

    target = ScriptedTarget()
    with_cluster(target, do, answers={"ApiVersions": offers(Metadata=(0, 9), CreateTopics=(0, 3))})


def test_offsets_are_requested_from_the_leaders() -> None:
    async def do(cluster: Cluster) -> None:
        wanted = [("orders", 0), ("orders", 1), ("orders", 2), ("nowhere", 0)]
        assert await offsets(cluster, wanted, EARLIEST) == {("orders", 1): 8}
        assert await offsets(cluster, wanted, LATEST) == {("orders", 1): 9}
        asked_of = [
            [message.api for message in broker.requests].count("ListOffsets")
            for broker in target.brokers
        ]
        assert asked_of == [2, 2]

    target = ScriptedTarget()
    target.leaders = {"orders": [1, 2, 1]}
    with_cluster(target, do)
