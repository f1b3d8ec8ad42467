"""A replayed Fetch is limited to what the captured one returned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from cluster.client.cluster import Cluster
from dissector.engine.exchanges.captured_exchange import CapturedExchange
from dissector.protocol.apis import KEYS
from replay.mapping.id_map import IdMap
from replay.model.step import Step
from replay.sessions.fetch_limits import CLOSED
from replay.sessions.live_fetch_sessions import FetchSessions
from tests.default_frames import response as frame
from tests.replay.support.builders import request, topology, whole

FETCH = KEYS["Fetch"]
MIB = 1 << 20


def _fetch(version: int, epoch: int, *partitions: int) -> Any:
    listed = [{"partition": each, "partition_max_bytes": MIB} for each in partitions]
    topics = [{"topic": "orders", "partitions": listed}] if listed else []
    session = {"session_id": 77 if epoch > 0 else 0, "session_epoch": epoch} if version > 6 else {}
    return request("Fetch", version, {**session, "topics": topics})


def _step(version: int, returned: Mapping[int, int]) -> Step:
    """A captured fetch with that many bytes of records of each partition."""
    parts = [{"partition_index": at, "records": bytes(size)} for at, size in returned.items()]
    body: dict[str, Any] = {"responses": [{"topic": "orders", "partitions": parts}]}
    body |= {"session_id": 77} if version > 6 else {}
    answer = frame(FETCH, version, 1, **whole("Fetch", version, body, "response"))[4:]
    captured = CapturedExchange(0, "c:1", "b:1", FETCH, version, 1, None, b"", answer, True, 0, 0)
    return Step(0, captured)


class _Reader:
    def __init__(self) -> None:
        target = topology({"orders": 3})
        self._sessions = FetchSessions(cast(Cluster, target), IdMap(target))
        self.forgotten: list[int] = []
        self.left_out: set[Any] = set()

    def limits(
        self,
        version: int,
        epoch: int,
        *partitions: int,
        returned: Mapping[int, int],
        times: int = 1,
    ) -> dict[int, int]:
        """Return the partitions of the request as sent at last, with their limits."""
        step = _step(version, returned)
        use = None
        for _ in range(times):
            message = _fetch(version, epoch, *partitions)
            use = use or self._sessions.begin(step, message)
            assert use is not None
            if use.session is not None:
                use.session.node = 0  # as after a response
            captured = step.captured.response_message()
            body = captured.body if captured is not None else None
            self._sessions.limit(use, version, message.body, body)
        assert use is not None
        gone = message.body.get("forgotten_topics_data", ())
        self.forgotten = [each for topic in gone for each in topic.partitions]
        self.left_out = set(use.left_out)
        return {
            each.partition: each.partition_max_bytes
            for topic in message.body.topics
            for each in topic.partitions
        }


def test_a_fetch_asks_for_what_the_captured_one_returned() -> None:
    found = _Reader().limits(11, 0, 0, 1, 2, returned={0: 100, 2: 2 * MIB})
    assert found == {0: 100, 2: MIB}


def test_a_fetch_without_records_asks_for_a_byte_of_each_partition() -> None:
    assert _Reader().limits(11, 0, 0, 1, returned={}) == {0: CLOSED, 1: CLOSED}
    assert _Reader().limits(11, -1, 0, 1, returned={1: 0}) == {0: CLOSED, 1: CLOSED}


def test_a_session_gets_the_partitions_that_change_and_loses_the_others() -> None:
    reader = _Reader()
    assert reader.limits(11, 0, 0, 1, 2, returned={0: 100}) == {0: 100}
    assert reader.limits(11, 1, 0, returned={0: 50}) == {0: 50}
    assert reader.limits(11, 2, returned={0: 50}) == {}
    assert reader.limits(11, 3, returned={1: 30}) == {1: 30}
    assert reader.forgotten == [0]
    assert reader.limits(11, 4, 1, returned={}) == {0: CLOSED, 1: CLOSED, 2: CLOSED}
    assert reader.forgotten == []
    assert reader.limits(11, 5, returned={}) == {}


def test_a_fetch_without_a_session_leaves_out_the_other_partitions() -> None:
    reader = _Reader()
    assert reader.limits(11, -1, 0, 1, returned={0: 100, 1: 0}) == {0: 100}
    assert reader.left_out == {("orders", 1)}


def test_each_attempt_doubles_the_limits() -> None:
    assert _Reader().limits(11, 0, 0, returned={0: 100}, times=3) == {0: 400}


def test_old_fetches_are_limited_if_brokers_return_whole_batches() -> None:
    assert _Reader().limits(6, 0, 0, 1, returned={0: 100}) == {0: 100}
    assert _Reader().limits(2, 0, 0, 1, returned={0: 100}) == {0: MIB, 1: MIB}
