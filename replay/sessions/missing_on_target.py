"""
Resources that the target lacks permanently: topics, partitions, coordinators, rights and records.

Requests are retried until the target has what the capture shows (see `again`), but only once for
each resource. A resource that is still missing then is remembered and reported once; a response
that has it removes the entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

from construct import Container

from dissector.errors import ReplayError
from dissector.protocol.api import Api
from dissector.protocol.apis import api
from dissector.protocol.error_codes import error_name
from dissector.protocol.messages import Message
from replay.client.cluster import Cluster
from replay.fields.field_layout import FieldValue, Role, Scope
from replay.fields.roles import layout_of, walk
from replay.mapping.id_map import IdMap
from replay.plan.exclusion_policy import UNHEARD_OF
from replay.sessions.retry_policy import Again, errors_of

_ANSWERED = frozenset({Role.ERROR, Role.RECORDS})
_NAMED = frozenset({Role.GROUP, Role.TRANSACTIONAL_ID})

_Thing = tuple[str, int]
"""Topic on the target and partition, or -1; for groups and transactional ids: name and -1."""

REMEMBERED = frozenset({Again.ABSENT, Again.NOT_READY, Again.NO_RECORDS})
"""Reasons for a retry that is not repeated once it has failed for a resource."""


class Absent:
    """
    The resources known to be missing in a pass.

    Args:
        cluster: The target.
        world: The id mapping.
        say: Called with a message for the user when a resource is found to be missing.
    """

    def __init__(self, cluster: Cluster, world: IdMap, say: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._world = world
        self._say = say
        self._lacks: dict[_Thing, str] = {}
        self._without_records: set[_Thing] = set()
        self._said: set[tuple[str, str]] = set()

    def knows(
        self,
        why: Again,
        asked: Container,
        captured: Message | None,
        answer: Container,
        version: int,
    ) -> bool:
        """
        Return whether a retry is known to be in vain.

        Args:
            why: The reason for the retry.
            asked: The body of the request, as it was sent.
            captured: The captured response.
            answer: The response body of the target.
            version: The version of the live request.
        """
        if why not in REMEMBERED or captured is None:
            return False
        if why is Again.NO_RECORDS:
            awaited = self._awaited(captured)
            lacks = self._without_records
            return all(each in lacks or self._is_lacking(each) for each in awaited)
        found = list(self._refused(captured, asked, answer, version))
        return bool(found) and all(self._is_lacking(thing) for thing, _ in found)

    async def give_up(
        self,
        why: Again,
        asked: Container,
        captured: Message | None,
        answer: Container,
        version: int,
    ) -> None:
        """Remember and report what is missing after all retries; arguments as in `knows`."""
        if why not in REMEMBERED or captured is None:
            return
        if why is Again.NO_RECORDS:
            self._without_records.update(self._awaited(captured))
            return
        refused = list(self._refused(captured, asked, answer, version))
        self._lacks.update((thing, error_name(error)) for thing, error in refused)
        with suppress(ReplayError):  # the next request raises it again
            await self._cluster.refresh(
                {topic for topic, partition in self._lacks if partition >= 0}
            )
        for thing, error in refused:
            self._tell(thing, error)

    def answered(
        self, asked: Container, captured: Message | None, answer: Container, version: int
    ) -> None:
        """Update the missing resources from a response that leads to no retry."""
        if captured is None:
            return
        found = api(captured.api_key or 0)
        if found is None:
            return
        is_refused = any(errors_of(found.response, version, answer))
        if self._lacks or self._without_records:
            for thing, place in self._places(found, asked, answer, version):
                if place.role is Role.RECORDS and place.value:
                    self._without_records.discard(thing)
                elif place.role is Role.ERROR and not place.value:
                    self._lacks.pop(thing, None)
        for thing, error in self._refused(captured, asked, answer, version) if is_refused else ():
            if _is_lasting(error):
                self._lacks[thing] = error_name(error)
                self._tell(thing, error)

    def _is_lacking(self, thing: _Thing) -> bool:
        """Return whether a resource is missing: itself, or leaderless like others of its topic."""
        if thing in self._lacks:
            return True
        topic, partition = thing
        is_found = partition < 0 or self._cluster.leader(topic, partition) is not None
        return not is_found and any(known == topic for known, _ in self._lacks)

    def _awaited(self, captured: Message) -> list[_Thing]:
        """Return the partitions with records in the captured response."""
        found = api(captured.api_key or 0)
        assert found is not None
        assert captured.body is not None
        schema, version = found.response, captured.api_version or 0
        return [
            (
                self._world.names.topic(self._world.topic_of(place.scope) or ""),
                place.scope.partition,
            )
            for place in walk(schema, version, captured.body, frozenset({Role.RECORDS}))
            if place.value and place.scope.partition is not None
        ]

    def _refused(
        self, captured: Message, asked: Container, answer: Container, version: int
    ) -> Iterator[tuple[_Thing, int]]:
        """Yield the resources with an error that the captured response does not have."""
        found = api(captured.api_key or 0)
        if found is None or captured.body is None:
            return
        before = {
            place.value
            for place in walk(found.response, captured.api_version or 0, captured.body, _ANSWERED)
            if place.role is Role.ERROR
        }
        for thing, place in self._places(found, asked, answer, version):
            if place.role is Role.ERROR and place.value and place.value not in before:
                yield thing, place.value

    def _places(
        self, found: Api, asked: Container, answer: Container, version: int
    ) -> Iterator[tuple[_Thing, FieldValue]]:
        """Yield the error and records fields of a response, each with its resource."""
        named = next(filter(None, _names(found, asked, version)), "")
        for place in walk(found.response, version, answer, _ANSWERED):
            topic = self._topic(place.scope)
            if topic:
                partition = place.scope.partition
                yield (topic, -1 if partition is None else partition), place
            elif named:
                yield (named, -1), place

    def _topic(self, scope: Scope) -> str:
        if scope.topic or scope.topic_id is None:
            return scope.topic or ""
        name = self._cluster.topic_name(scope.topic_id)
        if name is None and (captured := self._world.captured_topics.topic_name(scope.topic_id)):
            name = self._world.names.topic(captured)
        return name or ""

    def _tell(self, thing: _Thing, error: int) -> None:
        """Report each error once for each topic, group or transactional id."""
        what, partition = thing
        kind = what, error_name(error)
        if kind in self._said:
            return
        self._said.add(kind)
        text = f"the target refuses {what!r}: {error_name(error)}"
        if error in UNHEARD_OF:
            known = self._cluster.topics.get(what)
            text = f"the target lacks topic {what!r} (--create-topics creates it)"
            if known is not None and partition >= 0:
                count = len(known.leaders)
                text = f"topic {what!r} has no partition {partition} on the target, only {count}"
        self._say(f"{text}; it is not waited for again")


def _is_lasting(error: int) -> bool:
    """Return whether an error is permanent: an unknown topic, or a missing authorisation."""
    return error in UNHEARD_OF or error_name(error).endswith("AUTHORIZATION_FAILED")


def _names(found: Api, asked: Container, version: int) -> Iterable[Any]:
    """Return the groups and transactional ids of a request."""
    if not layout_of(found.request, version, _NAMED).members:
        return ()
    return (place.value for place in walk(found.request, version, asked, _NAMED))
