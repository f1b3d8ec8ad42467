"""Id mapping between the capture and the target, in both directions, for one pass."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from cluster.client.broker_metadata import Topology
from cluster.conversion.resource_names import NameMap
from cluster.fields.field_layout import Scope
from dissector.protocol.field_roles import Role
from replay.mapping.id_state import IdState
from replay.mapping.offset_map import Policy
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
"""Broker-assigned values that clients only hand back unchanged."""

_NAME_ROLES = frozenset(
    {
        Role.TOPIC,
        Role.TOPIC_PATTERN,
        Role.GROUP,
        Role.TRANSACTIONAL_ID,
        Role.TRANSACTIONAL_ID_PATTERN,
    }
)


MAPPED_ROLES = frozenset(role.value for role in Role if hasattr(LiveMapping, role)) | {
    role.value for role in OPAQUE_ROLES
}
"""The roles with a mapping of their values."""


class IdMap(IdState):
    """
    The id mapping of one pass.

    Attributes:
        roles: The roles of fields with mapped values.
        live_by_role: Role -> what maps its captured values, not None, to live ones; as `live`.
    """

    def __init__(
        self,
        target: Topology | None = None,
        names: NameMap | None = None,
        policy: Policy = "kept",
    ) -> None:
        super().__init__(target, names, policy)
        self._live: dict[Role, Callable[[Any, Scope], MappedValue]] = _methods(LiveMapping(self))
        self.live_by_role = {role.value: find for role, find in self._live.items()}
        self._captured: dict[Role, Callable[[Any, Scope], Any]] = _methods(CapturedMapping(self))
        inside = {Role.RECORDS, Role.EMBEDDED}
        unchanged = frozenset() if self.names.has_changes else _NAME_ROLES
        self.roles = frozenset(self._live.keys() | inside) - unchanged

    def live(self, role: Role, value: Any, scope: Scope) -> MappedValue:
        """
        Return the live value for a captured one, and the rule that chose it.

        Args:
            role: The role of the value.
            value: The captured value.
            scope: The scope of the value in the capture.

        Raises:
            RewriteError: No live value exists for it.
        """
        find = self._live.get(role)
        return (value, "") if find is None or value is None else find(value, scope)

    def captured(self, role: Role, value: Any, scope: Scope) -> Any:
        """
        Return the captured value for a live one; the value itself if it is not mapped.

        Args:
            role: The role of the value.
            value: The live value.
            scope: The scope of the value, in captured terms: see `captured_scope`.
        """
        find = self._captured.get(role)
        return value if find is None or value is None else find(value, scope)

    def captured_scope(self, scope: Scope) -> Scope:
        """Return a scope of live values in captured terms."""
        captured = Scope(scope)
        if all(value is None for value in captured.__dict__.values()):
            return captured
        for role in (Role.TOPIC_ID, Role.TOPIC, Role.GROUP, Role.TRANSACTIONAL_ID, Role.MEMBER):
            value = getattr(scope, role)
            setattr(captured, role, self.captured(role, value, captured))
        if scope.producer_id is not None:
            found = self.producers.captured(scope.producer_id, scope.producer_epoch)
            if found:
                captured.producer_id, captured.producer_epoch = found
        return captured


def _methods(mapping: LiveMapping | CapturedMapping) -> dict[Role, Callable[[Any, Scope], Any]]:
    """Return the method of each role, if any; `OPAQUE_ROLES` share one."""
    found = {role: method for role in Role if (method := getattr(mapping, role, None)) is not None}
    shared = {role: partial(_opaque, mapping, role) for role in OPAQUE_ROLES}
    return found | shared


def _opaque(mapping: LiveMapping | CapturedMapping, role: Role, value: Any, _: Scope) -> Any:
    return mapping.opaque(role, value)
