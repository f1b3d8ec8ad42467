"""Answers to ApiVersions, Metadata and FindCoordinator, and rewriting of broker addresses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from construct import Container

from cluster.fields.advertised_addresses import replace_addresses
from dissector.protocol.error_codes import error_code
from dissector.protocol.headers import API_VERSIONS
from serve.answers.client_request import ClientRequest
from serve.answers.served_state import Address, ServedState
from serve.forms.canonical_body import (
    canonical_schema,
    canonical_version,
    is_unknown_id,
    zero_body,
)
from serve.recording.captured_cluster import StateHistory, declared

UNKNOWN_TOPIC = error_code("UNKNOWN_TOPIC_OR_PARTITION")
_UNKNOWN_TOPIC_ID = error_code("UNKNOWN_TOPIC_ID")
_NO_OPERATIONS = -2147483648
_ALL_OPERATIONS = sum(1 << operation for operation in (3, 4, 5, 6, 7, 8, 10, 11))
"""Bits of the operations on a topic (KIP-430)."""
_NEWEST_API_VERSIONS = 4


class ClusterAnswers:
    """
    Composes answers about the cluster.

    Args:
        state: The served capture.
        more_versions: Versions of APIs that the server implements.
    """

    def __init__(
        self, state: ServedState, more_versions: Mapping[int, tuple[int, int]] | None = None
    ) -> None:
        self._state = state
        self._cluster = state.recording.cluster
        self._offered = {API_VERSIONS: (0, _NEWEST_API_VERSIONS)}
        self._offered |= self._cluster.offered() | dict(more_versions or {})

    def offer(self, versions: Mapping[int, tuple[int, int]]) -> None:
        """Offer further versions, as far as they are declared."""
        self._offered |= declared(versions)

    def offers(self, api_key: int, version: int) -> bool:
        """Return whether ApiVersions lists this version."""
        low, high = self._offered.get(api_key, (0, -1))
        return low <= version <= high

    async def api_versions(self, request: ClientRequest) -> Container:
        """Answer ApiVersions with the captured versions."""
        known = self._cluster.api_versions
        schema = canonical_schema(API_VERSIONS, "response")
        body = zero_body(schema, canonical_version(API_VERSIONS))
        body |= {k: v for k, v in (known or {}).items() if k != "error_code"}
        body.api_keys = [
            Container(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in sorted(self._offered.items())
        ]
        return Container(body, throttle_time_ms=0)

    async def metadata(self, request: ClientRequest) -> Container:
        """Answer Metadata with the listeners as brokers, and the current state of topics."""
        wanted = request.body.topics
        if wanted is None:
            topics = [each for each in map(self._topic, self._all_topics()) if not each.error_code]
        else:
            topics = [self._wanted_topic(each, request.client_id) for each in wanted]
        shows_operations = request.body.get("include_topic_authorized_operations")
        for topic in topics:
            topic.topic_authorized_operations = (
                _ALL_OPERATIONS if shows_operations and not topic.error_code else _NO_OPERATIONS
            )
        nodes = self._state.addresses_at(request.local_host)
        controller = self._cluster.controller
        return Container(
            brokers=[self._broker(node, address) for node, address in nodes.items()],
            cluster_id=self._cluster.cluster_id,
            controller_id=controller if controller in nodes else next(iter(nodes), -1),
            topics=topics,
        )

    def adopt(self, answer: Container, local_host: str) -> None:
        """Replace the brokers in a Metadata response of another cluster by the listeners."""
        nodes = self._state.addresses_at(local_host)
        first = next(iter(nodes), -1)
        answer.brokers = [self._broker(node, address) for node, address in nodes.items()]
        answer.cluster_id = self._cluster.cluster_id
        answer.controller_id = first
        for topic in answer.topics:
            for part in topic.partitions:
                part.leader_id = first if part.leader_id >= 0 else -1
                part.replica_nodes = part.isr_nodes = [first]
                part.offline_replicas = []

    async def find_coordinator(self, request: ClientRequest) -> Container:
        """Answer FindCoordinator as captured; the first broker coordinates other names."""
        kind = request.body.get("key_type", 0)
        nodes = self._state.addresses_at(request.local_host)
        found = [self._coordinator(kind, key, nodes) for key in request.body.coordinator_keys]
        return Container(coordinators=found)

    def _all_topics(self) -> Iterable[str]:
        """Return the current names of topics."""
        history = self._cluster.all_topics
        if not history.states:
            return self._cluster.topics
        history.advance(self._state.reached_ns, is_failed=False)
        return history.current()

    def _broker(self, node: int, address: Address) -> Container:
        known = self._cluster.brokers.get(node, {})
        host, port = address
        return Container(node_id=node, host=host, port=port, rack=known.get("rack"))

    def _wanted_topic(self, wanted: Container, client_id: str | None) -> Container:
        name = wanted.name or ""
        topic_id = wanted.get("topic_id")
        if not name and topic_id is not None:
            name = self._state.recording.topics.topic_name(topic_id)
        history = self._cluster.topics.get(name)
        if history is None:
            if is_unknown_id(name):
                return Container(
                    error_code=_UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id, partitions=[]
                )
            return Container(error_code=UNKNOWN_TOPIC, name=name, partitions=[])
        first_ns = self._cluster.first_asked_ns(client_id, name)
        if first_ns is not None:
            history.skip_to(first_ns)
        found = self._topic(name)
        history.advance(self._state.reached_ns, is_failed=_has_error(found))
        return found

    def _topic(self, name: str) -> Container:
        history: StateHistory[Container] = self._cluster.topics[name]
        state = history.current()
        if not _has_error(state):
            history.advance(self._state.reached_ns, is_failed=False)
            state = history.current()
        return Container(state)

    def _coordinator(self, kind: int, key: str, nodes: Mapping[int, Address]) -> Container:
        node, error = next(iter(nodes), -1), 0
        history = self._cluster.coordinators.get((kind, key))
        if history is not None:
            node, error = history.current()
            history.advance(self._state.reached_ns, is_failed=bool(error))
        if error:
            return Container(key=key, node_id=-1, host="", port=-1, error_code=error)
        if node not in nodes:
            node = next(iter(nodes), -1)
        host, port = nodes.get(node, ("", -1))
        return Container(key=key, node_id=node, host=host, port=port, error_code=0)


def _has_error(topic: Container) -> bool:
    return bool(topic.error_code) or any(each.error_code for each in topic.partitions)


def rewrite_addresses(api_key: int, body: Container, addresses: Mapping[int, Address]) -> None:
    """Replace addresses of brokers in a canonical response by those of the listeners."""
    first = next(iter(addresses.values()), None)
    schema, version = canonical_schema(api_key, "response"), canonical_version(api_key)
    replace_addresses(
        schema, version, body, lambda node, _: addresses.get(-1 if node is None else node, first)
    )
