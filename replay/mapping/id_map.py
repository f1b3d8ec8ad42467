"""Translation of ids between the capture and the target, both ways, for one run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from replay.client.broker_metadata import Topology
from replay.fields.field_layout import Role, Scope
from replay.mapping.id_state import IdState
from replay.mapping.offset_map import Policy
from replay.mapping.resource_names import NameMap
from replay.mapping.to_captured import CapturedMapping
from replay.mapping.to_live import LiveMapping, MappedValue

OPAQUE_ROLES = frozenset(
    {
        Role.SESSION_ID,
        Role.TOKEN,
        Role.CLIENT_INSTANCE,
        Role.SUBSCRIPTION,
        Role.CLUSTER_ID,
        Role.DIRECTORY,
    }
)
"""What a broker gives, and takes back as it is."""

_NAME_ROLES = frozenset(
    {
        Role.TOPIC,
        Role.TOPIC_PATTERN,
        Role.GROUP,
        Role.TRANSACTIONAL_ID,
        Role.TRANSACTIONAL_ID_PATTERN,
    }
)


class IdMap(IdState):
    """
    The ids of one run of a capture, or of one pass of a loop, and their translation.

    Attributes:
        roles: The roles of fields whose values may change.
    """

    def __init__(
        self,
        target: Topology | None = None,
        names: NameMap | None = None,
        policy: Policy = "kept",
    ) -> None:
        super().__init__(target, names, policy)
        self._live: dict[Role, Callable[[Any, Scope], MappedValue]] = _methods(LiveMapping(self))
        self._captured: dict[Role, Callable[[Any, Scope], Any]] = _methods(CapturedMapping(self))
        inside = {Role.RECORDS, Role.EMBEDDED}
        unchanged = frozenset() if self.names.has_changes else _NAME_ROLES
        self.roles = frozenset(self._live.keys() | inside) - unchanged

    def live(self, role: Role, value: Any, scope: Scope) -> MappedValue:
        """
        Return what the target has for a captured value, and which rule chose it.

        Args:
            role: What the value means.
            value: The captured value.
            scope: What encloses it in the capture.

        Raises:
            Refused: Nothing can stand for it.
        """
        find = self._live.get(role)
        return (value, "") if find is None or value is None else find(value, scope)

    def captured(self, role: Role, value: Any, scope: Scope) -> Any:
        """
        Return what the capture has for a value of the target; the value itself where nothing.

        Args:
            role: What the value means.
            value: The value of the target.
            scope: What encloses it, in terms of the capture: see `captured_scope`.
        """
        find = self._captured.get(role)
        return value if find is None or value is None else find(value, scope)

    def captured_scope(self, scope: Scope) -> Scope:
        """Return what the capture has for a scope of the target's values."""
        there = Scope(scope)
        if all(value is None for value in there.__dict__.values()):
            return there
        for role in (Role.TOPIC_ID, Role.TOPIC, Role.GROUP, Role.TRANSACTIONAL_ID, Role.MEMBER):
            value = getattr(scope, role)
            setattr(there, role, self.captured(role, value, there))
        if scope.producer_id is not None:
            found = self.producers.captured(scope.producer_id, scope.producer_epoch)
            if found:
                there.producer_id, there.producer_epoch = found
        return there


def _methods(way: LiveMapping | CapturedMapping) -> dict[Role, Callable[[Any, Scope], Any]]:
    """Return the method of each role that has one; `OPAQUE_ROLES` roles share one."""
    found = {role: method for role in Role if (method := getattr(way, role, None)) is not None}
    shared = {role: partial(_opaque, way, role) for role in OPAQUE_ROLES}
    return found | shared


def _opaque(way: LiveMapping | CapturedMapping, role: Role, value: Any, _: Scope) -> Any:
    return way.opaque(role, value)
