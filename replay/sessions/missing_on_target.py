"""
Resources that the target lacks permanently: topics, partitions, coordinators, rights and records.

Requests are retried until the target has the captured state (see `retry_policy`), but only once for
each resource. A resource that is still missing then is remembered and reported once; a response
that contains it removes the entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import product
from typing import Any

from construct import Container

from cluster.client.cluster import Cluster
from cluster.fields.field_layout import FieldValue, Scope
from cluster.fields.roles import layout_of, walk
from dissector.errors import ReplayError
from dissector.protocol.api import Api
from dissector.protocol.apis import api
from dissector.protocol.error_codes import error_code, error_name
from dissector.protocol.field_roles import Role
from dissector.protocol.messages import Message
from dissector.view.text.escape import escaped
from replay.mapping.id_map import IdMap
from replay.order.exclusion_policy import UNKNOWN_PARTITION_ERRORS
from replay.sessions.retry_policy import RetryReason, errors_of

_RESPONSE_ROLES = frozenset({Role.ERROR, Role.RECORDS})
_NAMING_ROLES = frozenset({Role.GROUP, Role.TRANSACTIONAL_ID})

_ANY = -1
_LACKS_TOPIC = "UNKNOWN_TOPIC_OR_PARTITION"
_EXISTS = error_code("TOPIC_ALREADY_EXISTS")
_MAX_NAMED = 4
_MAX_TEXT = 200

_TargetResource = tuple[str, int]
"""Topic on the target and partition, or -1; for groups and transactional ids: name and -1."""

REMEMBERED_REASONS = frozenset({RetryReason.ABSENT, RetryReason.NOT_READY, RetryReason.NO_RECORDS})
"""Reasons for a retry that is not repeated once it has failed for a resource."""


class MissingResources:
    """
    The resources known to be missing in a pass.

    Args:
        cluster: The target.
        ids: The id mapping.
        notify: Called with a message for the user about each missing resource.
        given_topics: Topics that the capture does not create itself. Where one of them is missing
            after all retries, the others that are not there are missing too.
    """

    def __init__(
        self,
        cluster: Cluster,
        ids: IdMap,
        notify: Callable[[str], None],
        given_topics: Iterable[str] = (),
    ) -> None:
        self._cluster = cluster
        self._ids = ids
        self._notify = notify
        self._given_topics = frozenset(map(ids.names.topic, given_topics))
        self._missing: dict[_TargetResource, str] = {}
        self._without_records: set[_TargetResource] = set()
        self._reported: set[tuple[str, str]] = set()

    @property
    def are_any(self) -> bool:
        """Whether anything is missing."""
        return bool(self._missing or self._without_records)

    def is_futile(
        self,
        why: RetryReason,
        request: Container,
        captured: Message | None,
        response: Container,
        version: int,
    ) -> bool:
        """
        Return whether a retry is known to be futile.

        Args:
            why: The reason for the retry.
            request: The body of the sent request.
            captured: The captured response.
            response: The response body of the target.
            version: The version of the live request.
        """
        if why not in REMEMBERED_REASONS or captured is None:
            return False
        if why is RetryReason.NO_RECORDS:
            awaited = self._expected_partitions(captured)
            lacks = self._without_records
            return all(each in lacks or self._is_missing(each) for each in awaited)
        found = list(self._refused(captured, request, response, version))
        return bool(found) and all(self._is_missing(thing) for thing, _ in found)

    async def record_missing(
        self,
        why: RetryReason,
        request: Container,
        captured: Message | None,
        response: Container,
        version: int,
    ) -> None:
        """Record and report a resource missing after all retries; arguments as in `is_futile`."""
        if why not in REMEMBERED_REASONS or captured is None:
            return
        if why is RetryReason.NO_RECORDS:
            self._without_records.update(self._expected_partitions(captured))
            return
        refused = list(self._refused(captured, request, response, version))
        self._missing.update((thing, error_name(error)) for thing, error in refused)
        with suppress(ReplayError):  # the next request raises it again
            topics = {topic for topic, partition in self._missing if partition >= 0}
            await self._cluster.refresh(topics | self._given_topics)
        for thing, error in refused:
            self._report(thing, error)
        self._record_missing_topics(refused)

    def _record_missing_topics(self, refused: Iterable[tuple[_TargetResource, int]]) -> None:
        """Record all missing topics, if one of them was awaited without success."""
        awaited = {name for (name, _), error in refused if error in UNKNOWN_PARTITION_ERRORS}
        awaited -= self._cluster.topics.keys()
        if awaited.isdisjoint(self._given_topics):
            return
        others = self._given_topics - self._cluster.topics.keys() - awaited
        known = {name for name, _ in self._missing}
        self._missing.update({(name, _ANY): _LACKS_TOPIC for name in others})
        errors = [error_name(each) for each in UNKNOWN_PARTITION_ERRORS if each is not None]
        self._reported.update(product(others, errors))
        if new := sorted(others - known):
            named = ", ".join(map(repr, new[:_MAX_NAMED]))
            more = f" and {len(new) - _MAX_NAMED:,} more" if len(new) > _MAX_NAMED else ""
            self._notify(f"the target lacks {named}{more} too; requests for them are not retried")

    def record_response(
        self, request: Container, captured: Message | None, response: Container, version: int
    ) -> None:
        """Update the missing resources from a response that leads to no retry."""
        if captured is None:
            return
        found = api(captured.api_key or 0)
        if found is None:
            return
        is_refused = any(errors_of(found.response, version, response))
        if self._missing or self._without_records:
            for thing, place in self._resource_fields(found, request, response, version):
                if place.role is Role.RECORDS and place.value:
                    self._without_records.discard(thing)
                elif place.role is Role.ERROR and not place.value:
                    self._missing.pop(thing, None)
                    self._missing.pop((thing[0], _ANY), None)
        for thing, error in (
            self._refused(captured, request, response, version) if is_refused else ()
        ):
            if found.name == "CreateTopics" and error != _EXISTS:
                self._missing[thing] = error_name(error)
                self._report_not_created(thing[0], error, response)
            elif _is_permanent(error):
                self._missing[thing] = error_name(error)
                self._report(thing, error)

    def _is_missing(self, resource: _TargetResource) -> bool:
        """Return whether a resource is missing: itself, or leaderless like others of its topic."""
        if resource in self._missing:
            return True
        topic, partition = resource
        is_found = partition < 0 or self._cluster.leader(topic, partition) is not None
        return not is_found and any(name == topic for name, _ in self._missing)

    def _expected_partitions(self, captured: Message) -> list[_TargetResource]:
        """Return the partitions with records in the captured response."""
        found = api(captured.api_key or 0)
        assert found is not None
        assert captured.body is not None
        schema, version = found.response, captured.api_version or 0
        return [
            (
                self._ids.names.topic(self._ids.topic_of(place.scope) or ""),
                place.scope.partition,
            )
            for place in walk(schema, version, captured.body, frozenset({Role.RECORDS}))
            if place.value and place.scope.partition is not None
        ]

    def _refused(
        self, captured: Message, request: Container, response: Container, version: int
    ) -> Iterator[tuple[_TargetResource, int]]:
        """Yield the resources with an error that the captured response does not have."""
        found = api(captured.api_key or 0)
        if found is None or captured.body is None:
            return
        before = {
            place.value
            for place in walk(
                found.response, captured.api_version or 0, captured.body, _RESPONSE_ROLES
            )
            if place.role is Role.ERROR
        }
        for thing, place in self._resource_fields(found, request, response, version):
            if place.role is Role.ERROR and place.value and place.value not in before:
                yield thing, place.value

    def _resource_fields(
        self, found: Api, request: Container, response: Container, version: int
    ) -> Iterator[tuple[_TargetResource, FieldValue]]:
        """Yield the error and records fields of a response, each with its resource."""
        named = next(filter(None, _named_resources(found, request, version)), "")
        for place in walk(found.response, version, response, _RESPONSE_ROLES):
            topic = self._topic(place.scope)
            if topic:
                partition = place.scope.partition
                yield (topic, -1 if partition is None else partition), place
            elif named:
                yield (named, -1), place

    def _topic(self, scope: Scope) -> str:
        if scope.topic or scope.topic_id is None:
            return scope.topic or ""
        name = self._ids.live_topics.topic_name(scope.topic_id)  # of deleted ones too
        if name is None and (captured := self._ids.captured_topics.topic_name(scope.topic_id)):
            name = self._ids.names.topic(captured)
        return name or ""

    def _report_not_created(self, name: str, error: int, response: Container) -> None:
        """Report a topic that the target refuses to create: nothing waits for it then."""
        lacks = (error_name(each) for each in UNKNOWN_PARTITION_ERRORS if each is not None)
        self._reported.update((name, each) for each in lacks)
        texts = (each.get("error_message") or "" for each in response.topics if each.name == name)
        why = escaped(next(texts, ""))[:_MAX_TEXT].rstrip(".")
        why = f"{error_name(error)}: {why}" if why else error_name(error)
        self._notify(
            f"the target does not create topic {name!r} ({why}); requests for it are not retried"
        )

    def _report(self, resource: _TargetResource, error: int) -> None:
        """Report each error once for each topic, group or transactional id."""
        name, partition = resource
        kind = name, error_name(error)
        if kind in self._reported:
            return
        self._reported.add(kind)
        text = f"the target refuses {name!r}: {error_name(error)}"
        if error in UNKNOWN_PARTITION_ERRORS:
            found = self._cluster.topics.get(name)
            text = f"the target lacks topic {name!r} (--create-topics creates it)"
            if found is not None and partition >= 0:
                count = len(found.leaders)
                text = f"topic {name!r} has no partition {partition} on the target, only {count}"
        self._notify(f"{text}; requests for it are not retried any more")


def _is_permanent(error: int) -> bool:
    """Return whether an error is permanent: an unknown topic, or a missing authorisation."""
    return error in UNKNOWN_PARTITION_ERRORS or error_name(error).endswith("AUTHORIZATION_FAILED")


def _named_resources(found: Api, request: Container, version: int) -> Iterable[Any]:
    """Return the groups and transactional ids of a request."""
    if not layout_of(found.request, version, _NAMING_ROLES).members:
        return ()
    return (place.value for place in walk(found.request, version, request, _NAMING_ROLES))
