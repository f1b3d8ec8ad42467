"""Captured brokers, API versions, and changes of topics and coordinators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

from construct import Container

from dissector.protocol.apis import api
from dissector.protocol.error_codes import error_code
from serve.recording.captured_log import TopicPartition

StateT = TypeVar("StateT")

ILLEGAL_SASL_STATE = error_code("ILLEGAL_SASL_STATE") or 34
_UNSUPPORTED_VERSION = error_code("UNSUPPORTED_VERSION")
_VOLATILE = ("topic_authorized_operations",)


class StateHistory(Generic[StateT]):
    """
    Successive states of an object in a capture; equal neighbours are merged.

    Attributes:
        states: First and last time of each state, and the state.
    """

    def __init__(self) -> None:
        self.states: list[tuple[int, int, StateT]] = []
        self._at = 0

    def add(self, time_ns: int, state: StateT) -> None:
        """Add an observed state."""
        if self.states and self.states[-1][2] == state:
            self.states[-1] = self.states[-1][0], time_ns, state
        else:
            self.states.append((time_ns, time_ns, state))

    def current(self) -> StateT:
        """Return the current state."""
        return self.states[self._at][2]

    def advance(self, reached_ns: int, *, is_failed: bool) -> None:
        """
        Go on to the next state after the end of the current one.

        Args:
            reached_ns: Captured time reached by clients.
            is_failed: The current state is an error, and ends after one answer.
        """
        if self._at + 1 < len(self.states) and (is_failed or reached_ns > self.states[self._at][1]):
            self._at += 1

    def skip_to(self, time_ns: int) -> None:
        """Go on to the state at a time, never back."""
        while self._at + 1 < len(self.states) and self.states[self._at + 1][0] <= time_ns:
            self._at += 1


class CapturedCluster:
    """
    The cluster as seen in responses.

    Attributes:
        brokers: Node id -> broker in a Metadata response.
        addresses: Captured `address:port` of brokers, in order of first use.
        api_versions: The most complete ApiVersions response, in canonical form.
        cluster_id: Cluster id in Metadata.
        controller: Node id of the controller in Metadata; -1 if unknown.
        topics: Topic -> its states, as elements of Metadata responses.
        coordinators: Key type and key -> node id and error.
        partitions: All partitions of the topics.
        login_errors: Error codes of SaslHandshake responses.
        all_topics: Names in responses to requests for all topics.
    """

    def __init__(self) -> None:
        self.brokers: dict[int, Container] = {}
        self.addresses: dict[str, int] = {}
        self.api_versions: Container | None = None
        self.cluster_id: str | None = None
        self.controller = -1
        self.topics: dict[str, StateHistory[Container]] = {}
        self.coordinators: dict[tuple[int, str], StateHistory[tuple[int, int]]] = {}
        self.partitions: set[TopicPartition] = set()
        self.login_errors: set[int] = set()
        self.all_topics: StateHistory[tuple[str, ...]] = StateHistory()
        self._first_asked: dict[tuple[str | None, str], int] = {}
        self._offered: dict[int, tuple[int, int]] = {}
        self._used: dict[int, tuple[int, int]] = {}

    def learn_metadata(
        self, time_ns: int, client_id: str | None, body: Container, *, is_of_all: bool
    ) -> None:
        """Add brokers and topics of a Metadata response."""
        if is_of_all:
            self.all_topics.add(time_ns, tuple(sorted(each.name for each in body.topics)))
        for broker in body.brokers:
            self.brokers[broker.node_id] = broker
        self.cluster_id = body.get("cluster_id") or self.cluster_id
        if body.get("controller_id", -1) >= 0:
            self.controller = body.controller_id
        for topic in body.topics:
            if not topic.name:
                continue
            state = Container({k: v for k, v in topic.items() if k not in _VOLATILE})
            history = self.topics.setdefault(topic.name, StateHistory())
            history.add(time_ns, state)
            self._first_asked.setdefault((client_id, topic.name), time_ns)
            self.partitions |= {(topic.name, each.partition_index) for each in topic.partitions}

    def learn_coordinator(self, time_ns: int, kind: int, body: Container) -> None:
        """Add coordinators of a FindCoordinator response."""
        for each in body.coordinators:
            history = self.coordinators.setdefault((kind, each.key), StateHistory())
            history.add(time_ns, (each.node_id, each.error_code))

    @property
    def refuses_logins(self) -> bool:
        """Whether the captured listeners had no SASL, and clients tried to log in."""
        return self.login_errors == {ILLEGAL_SASL_STATE}

    def learn_versions(self, body: Container) -> None:
        """Add versions of an ApiVersions response."""
        if body.error_code == _UNSUPPORTED_VERSION or not body.api_keys:
            return
        if self.api_versions is None or len(body.api_keys) >= len(self.api_versions.api_keys):
            self.api_versions = body
        for each in body.api_keys:
            self._offered.setdefault(each.api_key, (each.min_version, each.max_version))

    def learn_use(self, api_key: int, version: int) -> None:
        """Record the version of a request."""
        low, high = self._used.get(api_key, (version, version))
        self._used[api_key] = min(low, version), max(high, version)

    def first_asked_ns(self, client_id: str | None, topic: str) -> int | None:
        """Return the time of a client's first answer about a topic; None without one."""
        return self._first_asked.get((client_id, topic))

    def offered(self) -> dict[int, tuple[int, int]]:
        """Return the captured versions of APIs, limited to declared ones."""
        return declared(self._offered or self._used)


def declared(offered: Mapping[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
    """Return versions of APIs, limited to declared ones."""
    found = {}
    for key, (low, high) in sorted(offered.items()):
        known = api(key)
        if known is not None:
            versions = known.request.versions
            low, high = max(low, versions.low), min(high, versions.high)
            if low <= high:
                found[key] = low, high
    return found
