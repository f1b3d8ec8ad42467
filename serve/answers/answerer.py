"""Dispatch of requests: to captured answers, composed answers, or a fallback."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Protocol

from construct import Container

from cluster.fields.refusal import RewriteError
from cluster.fields.roles import walk
from dissector.errors import ReplayError
from dissector.protocol.api import Kind
from dissector.protocol.embedded.masking import mask
from dissector.protocol.error_codes import error_code
from dissector.protocol.facts import Facts, collect
from dissector.protocol.field_roles import Role
from dissector.protocol.messages import Message
from serve.answers.client_request import ClientRequest, Unmatched
from serve.answers.cluster_answers import ClusterAnswers, rewrite_addresses
from serve.answers.committed_offsets import CommittedOffsets
from serve.answers.epoch_groups import EpochGroups
from serve.answers.foreign_topics import merge_topics, split_topics, topic_names
from serve.answers.generation_groups import ClassicGroups
from serve.answers.log_answers import LogAnswers
from serve.answers.mirrored_errors import error_answer
from serve.answers.served_state import ServedState
from serve.answers.share_answers import ShareAnswers
from serve.answers.transaction_answers import TransactionAnswers
from serve.forms.canonical_body import (
    canonical_body,
    canonical_schema,
    canonical_version,
    response_frame,
)
from serve.matching.exchange_keys import EPOCH_GROUPS, keys_of
from serve.matching.meaning import Meaning, meaning_of, title
from serve.matching.nearest_exchange import nearest
from serve.report.serve_report import Miss, SeenRequest, ServeReport

Versions = Mapping[int, tuple[int, int]]
"""Keys of APIs -> the lowest and highest version offered."""

_Handler = Callable[[ClientRequest], Awaitable[Container | None]]

UNKNOWN_ERROR = error_code("UNKNOWN_SERVER_ERROR") or -1
UNSUPPORTED_VERSION = error_code("UNSUPPORTED_VERSION") or 35


class Fallback(Protocol):
    """
    A source of answers to requests without a captured one.

    Attributes:
        name: Its name in the report.
    """

    name: str

    async def prepare(self) -> Versions:
        """
        Check ahead whether it may be used; raise ReplayError if not.

        Returns:
            The versions of APIs that it offers; empty if they are not known yet.
        """
        ...

    async def answer(self, request: ClientRequest) -> Container:
        """Return the canonical response to a request; raise ReplayError without one."""
        ...

    def forget(self, connection: int) -> None:
        """Close what belongs to the connection of a client that is gone."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class Answerer:
    """
    Answers requests of all clients.

    Args:
        state: The served capture.
        report: Collects requests and misses.
        fallback: Answers misses; without one, clients get an error.
        more_versions: Versions of APIs that the server implements.
        follows_producers: Serve the records of clients in partitions with captured producers.
        compares: Compare produced records with the captured ones.
    """

    def __init__(
        self,
        state: ServedState,
        report: ServeReport,
        fallback: Fallback | None = None,
        more_versions: Versions | None = None,
        *,
        follows_producers: bool = False,
        compares: bool = False,
    ) -> None:
        self.state = state
        self.report = report
        self.cluster = ClusterAnswers(state, more_versions)
        self._recording = state.recording
        self._fallback = fallback
        logs = LogAnswers(
            state, self._add_miss, follows_producers=follows_producers, compares=compares
        )
        groups = ClassicGroups(state, self._add_miss)
        offsets = CommittedOffsets(state, groups)
        transactions = self._transactions = TransactionAnswers(state, logs, offsets)
        self._epoch_groups = EpochGroups(state, self._note_unserved)
        shares = ShareAnswers(state, self._note_unserved)
        self._handlers: dict[str, _Handler] = {
            "ApiVersions": self.cluster.api_versions,
            "Metadata": self.cluster.metadata,
            "FindCoordinator": self.cluster.find_coordinator,
            "Produce": logs.produce,
            "Fetch": logs.fetch,
            "ListOffsets": logs.list_offsets,
            "DeleteRecords": logs.delete_records,
            "OffsetForLeaderEpoch": logs.offset_for_leader_epoch,
            "JoinGroup": groups.join,
            "SyncGroup": groups.sync,
            "Heartbeat": groups.heartbeat,
            "LeaveGroup": groups.leave,
            "OffsetCommit": offsets.commit,
            "TxnOffsetCommit": offsets.commit_in_transaction,
            "OffsetFetch": offsets.fetch,
            "InitProducerId": transactions.init_producer_id,
            "AddPartitionsToTxn": transactions.add_partitions,
            "AddOffsetsToTxn": transactions.add_offsets,
            "EndTxn": transactions.end,
            "ShareFetch": shares.fetch,
            "ShareAcknowledge": shares.acknowledge,
            **dict.fromkeys(EPOCH_GROUPS, self._epoch_groups.heartbeat),
        }

    def read(self, message: Message, connection: int, local_host: str = "") -> ClientRequest:
        """
        Convert a decoded request to canonical form.

        Raises:
            RewriteError: The canonical version cannot express it.
        """
        body = canonical_body(message, self._recording.topics)
        request = ClientRequest(message, body, connection, local_host)
        self.report.add_request(
            SeenRequest(request.api, request.version, request.client_id, connection, body)
        )
        return request

    async def answer(self, request: ClientRequest) -> Container | None:
        """Return the canonical response to a request; None if the client expects no response."""
        known, foreign = split_topics(request, self._recording.knows_topic)
        if foreign is None:
            return await self._answer_known(request)
        instead = await self._instead(foreign, f"topic {', '.join(topic_names(foreign))}")
        if known is None:
            return instead if _is_answered(request) else None
        answer = await self._answer_known(known)
        return None if answer is None else merge_topics(request.api, answer, instead)

    def frame(self, request: ClientRequest, answer: Container) -> bytes:
        """
        Encode a canonical response in the version of its request.

        Raises:
            RewriteError: That version cannot express it.
        """
        return response_frame(request.message, answer, self._recording.topics)

    async def _answer_known(self, request: ClientRequest) -> Container | None:
        handler = self._handlers.get(request.api, self._recorded)
        self.state.latency_s = 0.0
        try:
            answer = await handler(self._with_captured_names(request))
        except Unmatched as miss:
            return await self._instead(request, miss.what)
        request.latency_s = self.state.latency_s or self._recording.mean_latency_s(request.api)
        if answer is not None:
            names = {captured: live for live, captured in self._names().items()}
            self._rename("response", request.api_key, answer, names)
            addresses = self.state.addresses_at(request.local_host)
            rewrite_addresses(request.api_key, answer, addresses)
        return answer

    def _with_captured_names(self, request: ClientRequest) -> ClientRequest:
        """Replace ids of live members and producers by captured ids."""
        if request.api == "InitProducerId":
            self._transactions.play_producer(request)
        if request.api in EPOCH_GROUPS:
            return request
        body = copy.deepcopy(request.body) if self._names() else request.body
        self._rename("request", request.api_key, body, self._names())
        return replace(request, body=body)

    def _names(self) -> dict[str, str]:
        """Return a map from live ids of members and producers to captured ids."""
        return self._epoch_groups.played() | self._transactions.played

    def _rename(self, kind: Kind, api_key: int, body: Container, names: Mapping[str, str]) -> None:
        schema, version = canonical_schema(api_key, kind), canonical_version(api_key)
        for each in walk(schema, version, body, _RUN_NAMES) if names else ():
            if each.value in names:
                each.replace(names[each.value])

    async def _recorded(self, request: ClientRequest) -> Container:
        """Return the captured response to an equivalent request."""
        keys = keys_of(request.api_key, request.client_id, request.body)
        try:
            found = self.state.take_response(keys)
        except RewriteError as error:
            raise Unmatched(f"a convertible answer: {error}") from None
        if found is None:
            raise Unmatched("an equivalent request")
        return found

    async def _instead(self, request: ClientRequest, what: str) -> Container:
        """Answer a miss."""
        if self._fallback is None:
            self._add_miss(request, what)
            error = UNKNOWN_ERROR if request.api not in _WITH_TOPICS else _UNKNOWN_TOPIC
            return error_answer(request.api_key, request.body, error)
        try:
            answer = await self._fallback.answer(request)
        except (ReplayError, RewriteError) as error:
            self._add_miss(request, f"{what}; the {self._fallback.name}: {error}")
            return error_answer(request.api_key, request.body, UNKNOWN_ERROR)
        self._add_miss(request, what, self._fallback.name)
        request.answered_by.append(self._fallback.name)
        self._learn_topics(request.api_key, answer)
        if request.api == "Metadata":
            self.cluster.adopt(answer, request.local_host)
        addresses = self.state.addresses_at(request.local_host)
        rewrite_addresses(request.api_key, answer, addresses)
        return answer

    def _learn_topics(self, api_key: int, answer: Container) -> None:
        """Learn the topic ids of another cluster, by which clients then ask."""
        facts = Facts()
        schema = canonical_schema(api_key, "response")
        collect(schema, canonical_version(api_key), answer, facts)
        self._recording.topics.known.learn(facts.names)

    def _note_unserved(self, request: ClientRequest, what: str) -> None:
        """Note what a client lacks to get records; empty once it lacks nothing any more."""
        key = request.api, request.client_id, request.body.group_id
        if what:
            miss = Miss(request.api, request.version, request.client_id, what)
            self.report.unserved[key] = miss
        else:
            self.report.unserved.pop(key, None)

    def _add_miss(self, request: ClientRequest, what: str, answered_by: str = "") -> None:
        meaning = _meaning_to_show(request.api_key, request.body)
        some = self._recording.by_api.get(request.api_key, ())
        found = nearest(
            meaning,
            (
                (number, _meaning_to_show(request.api_key, self._recording.request(number)))
                for number in some
            ),
        )
        near = ("", "", None, None)
        if found is not None:
            captured = self._recording.exchange(found.number)
            asked = self._recording.request(found.number)
            text = title(request.api_key, _meaning_to_show(captured.api_key, asked))
            near = (f"{text} of {captured.client}", found.field, found.sent, found.captured)
        self.report.add_miss(
            Miss(request.api, request.version, request.client_id, what, *near, answered_by)
        )


def _meaning_to_show(api_key: int, body: Container) -> Meaning:
    """Return the meaning of a request without its secrets."""
    schema, version = canonical_schema(api_key, "request"), canonical_version(api_key)
    return meaning_of(api_key, mask(body, schema, version))


def _is_answered(request: ClientRequest) -> bool:
    return request.api != "Produce" or bool(request.body.acks)


_RUN_NAMES = frozenset({Role.MEMBER, Role.TRANSACTIONAL_ID})
_UNKNOWN_TOPIC = error_code("UNKNOWN_TOPIC_OR_PARTITION") or 3
_WITH_TOPICS = frozenset({"Metadata", "Produce", "Fetch", "ListOffsets", "OffsetForLeaderEpoch"})
