"""Compares the transactions in the logs of the target with those of a pass, and with themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from construct import Container

from cluster.client.cluster import Cluster
from dissector.errors import ReplayError
from dissector.protocol.apis import KEYS
from replay.final.asking import ask_until
from replay.final.endings import Ending, Endings
from replay.final.findings import Findings
from replay.final.log_scan import LogScan, Marker, scan
from replay.mapping.id_map import IdMap
from replay.mapping.offset_map import PartitionOffsets

_Log = tuple[str, int]
"""Captured topic, and partition."""

_MAX_LOGS = 64
"""Logs that are read at the end of a pass."""

_STATES = {True: "CompleteCommit", False: "CompleteAbort"}
_JUDGED_STATES = frozenset({*_STATES.values(), "Ongoing"})
"""Others follow from a coordinator that forgets a transactional id, or is at work."""


class TransactionCheck:
    """
    Reads the logs that a pass wrote with producer ids, and asks for transactions and producers.

    Args:
        ids: The id mapping of the finished pass.
        cluster: The target.
        findings: Takes the differences.
    """

    def __init__(self, ids: IdMap, cluster: Cluster, findings: Findings) -> None:
        self._ids = ids
        self._cluster = cluster
        self._findings = findings
        self._is_patient = True

    async def run(self, endings: Endings, ends: Mapping[_Log, int]) -> None:
        """
        Compare transactions.

        Args:
            endings: How the transactions of the pass ended.
            ends: The logs that it wrote, with their ends.
        """
        await self._check_states(dict(endings.states()))
        known, logs = endings.of_producers(), list(ends.items())[:_MAX_LOGS]
        for (topic, partition), end in logs:
            log = self._ids.offsets.log(topic, partition)
            try:
                found = await self._settled(topic, partition, log, end)
                self._check_log((topic, partition), log, found, known)
                await self._check_producers((topic, partition), log, found, known)
            except ReplayError as error:
                self._findings.leave_open(topic, partition, str(error))

    async def _settled(
        self, topic: str, partition: int, log: PartitionOffsets, end: int
    ) -> LogScan:
        """Return what a log says, once its transactions have markers, or after a timeout."""
        place = self._ids.names.topic(topic), partition, log.appended.live_start, end

        def is_settled(found: LogScan) -> bool:
            is_done = found.is_whole and not found.open
            return is_done or found.is_limited or found.stable_end >= 0 or not self._is_patient

        found = await ask_until(self._cluster, lambda: scan(self._cluster, *place), is_settled)
        self._is_patient = is_settled(found)  # other logs then cost no further timeout
        return found

    def _check_log(
        self, place: _Log, log: PartitionOffsets, found: LogScan, known: Mapping[int, list[Ending]]
    ) -> None:
        for producer, endings in known.items():
            markers = [each for each in found.markers if each.producer_id == producer]
            self._check_markers(place, markers, endings)
        step = log.appended.newest.step
        path = f"{_path(place)}.aborted_transactions"
        if wrong := found.listed & found.committed:
            text = f"producer {min(wrong).producer_id}, offset {min(wrong).first_offset}"
            self._findings.add(step, path, "committed", f"listed as aborted: {text} of the target")
        if missing := found.aborted - found.listed:
            text = f"producer {min(missing).producer_id}, offset {min(missing).first_offset}"
            self._findings.add(step, path, "aborted", f"not listed: {text} of the target")
        lost = sorted(found.open.keys() & known.keys()) if found.is_whole else []
        if lost:
            text = f"none for producer {lost[0]} of the target after offset {found.open[lost[0]]}"
            self._findings.add(step, f"{_path(place)}.control", "a transaction marker", text)
        if found.stable_end >= 0:
            text = f"none from offset {found.end} on, although stable up to {found.stable_end}"
            self._findings.add(step, f"{_path(place)}.records", "records", text)

    def _check_markers(
        self, place: _Log, markers: Sequence[Marker], endings: Sequence[Ending]
    ) -> None:
        """Compare markers with the endings: each belongs to a later one than that before it."""
        at = 0
        for marker in markers:
            fits = (
                number
                for number in range(at, len(endings))
                if endings[number].is_commit in (None, marker.is_commit)
            )
            following = next(fits, None)
            if following is None:
                step = endings[min(at, len(endings) - 1)].step
                word = "COMMIT" if marker.is_commit else "ABORT"
                where = f"{place[0]}-{place[1]}, offset {marker.offset} of the target"
                self._findings.add(
                    step, "committed", str(not marker.is_commit), f"{word} in {where}"
                )
                return
            at = following + 1

    async def _check_producers(
        self, place: _Log, log: PartitionOffsets, found: LogScan, known: Mapping[int, list[Ending]]
    ) -> None:
        """Compare the producers that the leader has of a log with the log itself."""
        if not found.is_whole or KEYS["DescribeProducers"] not in self._cluster.versions:
            return
        topic = self._ids.names.topic(place[0])
        leader = self._cluster.leader(topic, place[1])
        body = {"topics": [{"name": topic, "partition_indexes": [place[1]]}]}
        response = await self._cluster.request(
            None if leader is None else leader.node, "DescribeProducers", body
        )
        path, step = _path(place), log.appended.newest.step
        for each in _active_producers(response):
            last = found.sequences.get((each.producer_id, each.producer_epoch))
            if last is not None and each.last_sequence != last:
                text = f"{each.last_sequence} of producer {each.producer_id} (DescribeProducers)"
                self._findings.add(step, f"{path}.last_sequence", str(last), text)
            is_open = each.producer_id in found.open or each.producer_id not in known
            if each.current_txn_start_offset >= 0 and not is_open:
                text = f"open from offset {each.current_txn_start_offset} on (DescribeProducers)"
                self._findings.add(step, f"{path}.current_txn_start_offset", "ended", text)

    async def _check_states(self, endings: Mapping[str, Ending]) -> None:
        """Compare the states of transactions; wait while coordinators complete them."""
        if not endings or KEYS["ListTransactions"] not in self._cluster.versions:
            return
        try:
            states = await ask_until(
                self._cluster,
                self._states,
                lambda found: (
                    not any(found.get(each, "").startswith("Prepare") for each in endings)
                ),
            )
        except ReplayError:
            return  # a coordinator that does not answer
        for title, ending in endings.items():
            wanted = None if ending.is_commit is None else _STATES[ending.is_commit]
            state = states.get(title, "")
            if wanted is not None and state != wanted and state in _JUDGED_STATES:
                self._findings.add(ending.step, "committed", wanted, f"{state} (ListTransactions)")

    async def _states(self) -> dict[str, str]:
        body = {
            "state_filters": [],
            "producer_id_filters": [],
            "duration_filter": -1,
            "transactional_id_pattern": None,
        }
        states: dict[str, str] = {}
        for node in self._cluster.brokers:
            response = await self._cluster.request(node, "ListTransactions", body)
            for each in response.transaction_states:
                states[each.transactional_id] = each.transaction_state
        return states


def _active_producers(response: Container) -> Iterator[Container]:
    for topic in response.topics:
        for each in topic.partitions:
            yield from () if each.error_code else each.active_producers


def _path(place: _Log) -> str:
    return f"responses[{place[0]}].partition_responses[{place[1]}]"
