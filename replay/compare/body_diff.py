"""Full comparison of two response bodies: walks both along their schemas, and maps ids."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from dissector.protocol.embedded.membership.group_members import MemberField, read_member
from dissector.protocol.embedded.reading import Embedded
from dissector.protocol.error_codes import error_name
from dissector.view.text.value_text import jsonable
from replay.compare import comparison_policy as policy
from replay.compare.config_sources import is_default_setting
from replay.compare.record_diff import compare_records, data_offsets
from replay.compare.tolerances import (
    have_equal_task_counts,
    have_same_error,
    is_assigned,
    is_null_for_empty,
)
from replay.fields.field_layout import Role, Scope, StructField, StructLayout, ValueField
from replay.fields.roles import layout_of
from replay.mapping.element_keys import index_by_key, key_text
from replay.mapping.id_map import IdMap
from replay.mapping.reader_accounts import ReturnedRecords
from replay.model.kafka_enums import INTERNAL_TOPICS
from replay.model.offset_ranges import Ranges
from replay.model.outcome import Difference, Reason
from replay.plan.concurrent_changes import Overlaps
from replay.sessions.retry_policy import TRANSITIONAL_STATES

_Body = Mapping[str, Any]


class BodyDiff:
    """
    Compares a captured body with a live one.

    Args:
        ids: The id mapping.
        may_have_more: Names of arrays in which the target may have more than the capture.
        created_topics: Topics created for the replay, by their captured names.
        overlaps: Partitions and groups that changed during the captured request; see `overlaps`.
        show_secrets: Whether credentials in records may be shown.

    Attributes:
        differences: The differences so far.
        reasons: Why other parts that are not identical are equivalent.
        returned: The records of both sides, for each partition with records on either.
    """

    def __init__(
        self,
        ids: IdMap,
        may_have_more: frozenset[str] = frozenset(),
        created_topics: Collection[str] = (),
        show_secrets: bool = False,
        overlaps: Overlaps = MappingProxyType({}),
    ) -> None:
        self.differences: list[Difference] = []
        self.reasons: set[Reason] = set()
        self.returned: list[ReturnedRecords] = []
        self._ids = ids
        self._may_have_more = may_have_more
        self._created_topics = created_topics
        self._show_secrets = show_secrets
        self._overlaps = overlaps
        self._protocol: tuple[str | None, str | None] = None, None

    @property
    def is_equivalent(self) -> bool:
        """Whether parts are equivalent without being identical."""
        return bool(self.reasons)

    def compare(
        self, nodes: tuple[StructLayout, StructLayout], captured: _Body, live: _Body, outer: Scope
    ) -> None:
        """
        Compare two bodies.

        Args:
            nodes: The fields of both, each of its version.
            captured: The captured body.
            live: The body of the target.
            outer: The scope of the captured body, from its request.
        """
        self._protocol = captured.get("protocol_type"), captured.get("protocol_name")
        self._struct(nodes, captured, live, "", outer)

    def _struct(
        self,
        nodes: tuple[StructLayout, StructLayout],
        captured: _Body,
        live: _Body,
        path: str,
        outer: Scope,
    ) -> None:
        node, other = nodes
        scope = outer.inside(node, captured)
        there = None if node is other else {member.name: member for member in other.members}
        begun = len(self.differences)
        if sooner := self._why_sooner(node, captured, live, scope):
            self.reasons.add(sooner)
            return
        same_extent = self._records(node, captured, live, path, scope)
        for member in node.members:
            name = member.name
            twin = member if there is None else there.get(name)
            if twin is None or name not in captured or name not in live:
                continue
            below = f"{path}.{name}" if path else name
            before, after = captured[name], live[name]
            versions = node.version, other.version
            has_moved = (
                name in policy.VOLATILE_OFFSETS
                and before != after
                and have_same_error(node, captured, live)
            )
            if has_moved or is_null_for_empty(member.field, versions, before, after):
                self.reasons.add(Reason.REFUSED if has_moved else Reason.NULL)
            elif isinstance(member, ValueField):
                if (
                    member.role is Role.CONFIG_VALUE
                    and captured.get("name") in policy.BROKER_SETTINGS
                ):
                    continue  # every broker has its own
                self._leaf(member, before, after, below, scope)
            elif same_extent is not False and isinstance(twin, StructField):
                self._branch((member, twin), before, after, below, scope)
        errors = [each for each in self.differences[begun:] if each.is_error]
        if any("." not in each.path[len(path) + 1 :] for each in errors):
            # Other differences in the struct follow from the different error.
            self.differences[begun:] = errors
        if is_default_setting(captured, live):
            changed = self.differences[begun:]
            self.differences[begun:] = [replace(each, is_default=True) for each in changed]

    def _why_sooner(
        self, node: StructLayout, captured: _Body, live: _Body, scope: Scope
    ) -> Reason | None:
        """Return why the target may have succeeded where the captured broker had not, if so."""
        for leaf in node.members:
            if isinstance(leaf, ValueField) and leaf.role is Role.ERROR and leaf.name in captured:
                errors = captured[leaf.name], live.get(leaf.name, 0)
                if errors[0] and not errors[1] and error_name(errors[0]) in policy.TRANSIENT_ERRORS:
                    return Reason.READY
                if errors[0] in policy.MISROUTED_ERRORS and errors[1] != errors[0]:
                    return Reason.ELSEWHERE
                is_made = tuple(map(error_name, errors)) in policy.CREATED_TOPIC_ERRORS
                topic = self._ids.topic_of(scope)
                if is_made and (topic in self._created_topics or topic in INTERNAL_TOPICS):
                    return Reason.MADE if topic in self._created_topics else Reason.INTERNAL
        if (
            captured.get("group_state") in TRANSITIONAL_STATES
            and live.get("group_state") == policy.STABLE_STATE
        ):
            return Reason.AT_REST
        return None

    def _records(
        self, node: StructLayout, captured: _Body, live: _Body, path: str, scope: Scope
    ) -> bool | None:
        """Compare records; return whether both have the same offsets, None without records."""
        if _records_of(node) is None:
            return None
        topic, partition = self._ids.topic_of(scope), scope.partition
        log = None
        if topic is not None and partition is not None:
            log = self._ids.offsets.log(topic, partition)
        before, after = captured.get("records"), live.get("records")
        found = compare_records(f"{path}.records", topic, before, after, log, self._show_secrets)
        self.differences += found.differences
        if not found.same_extent:
            self.reasons.add(Reason.RECORDS)
        self._watermarks(captured, live, path, found.starts)
        if topic is not None and partition is not None:
            owed = Ranges() if live.get("error_code") else found.captured
            self.returned.append(ReturnedRecords(topic, partition, owed, found.live))
        return found.same_extent

    def _watermarks(
        self, captured: _Body, live: _Body, path: str, starts: tuple[int, int] | None
    ) -> None:
        """
        Compare high watermark and last stable offset with the records: neither lies below them.

        A broker takes both before it reads (Partition.readRecords of Kafka 3.9), so they may be as
        low as the first of the records. An open transaction may end meanwhile.
        """
        for name in (
            "high_watermark",
            *(() if self._ids.ended_transactions else ("last_stable_offset",)),
        ):
            before, after = captured.get(name, -1), live.get(name, -1)
            if starts and before >= starts[0] and 0 <= after < starts[1]:
                self._add_difference(f"{path}.{name}", before, after)

    def _compare_unpaired(
        self, node: StructLayout, element: _Body, scope: Scope, is_live: bool
    ) -> None:
        """Add the records of an element that the other response lacks to `returned`."""
        scope = scope.inside(node, element)
        for member in node.members:
            if isinstance(member, StructField) and member.is_list:
                for each in element.get(member.name) or ():
                    self._compare_unpaired(member.layout, each, scope, is_live)
        if _records_of(node) is None or not element.get("records"):
            return
        if is_live:
            scope = self._ids.captured_scope(scope)
        topic, partition = self._ids.topic_of(scope), scope.partition
        if topic is not None and partition is not None:
            log = self._ids.offsets.log(topic, partition) if is_live else None
            given, none = data_offsets(element["records"], log), Ranges()
            sides = (none, given) if is_live else (given, none)
            self.returned.append(ReturnedRecords(topic, partition, *sides))

    def _leaf(self, leaf: ValueField, before: Any, after: Any, path: str, scope: Scope) -> None:
        role = leaf.role
        if role is Role.RECORDS:
            return
        if leaf.is_list and before is not None and after is not None:
            self._list(leaf, before, after, path, scope)
            return
        if role is not Role.PLAIN and role is not Role.ERROR:
            if role is Role.EMBEDDED and before != after:
                self._embedded(before, after, path, scope)
                return
            is_there = role is Role.OFFSET and self._ids.is_same_position(scope, before, after)
            after = before if is_there else self._ids.captured(role, after, scope)
        if before == after:
            return
        is_free = role in policy.ASSIGNED_ROLES or leaf.name in policy.VOLATILE_OFFSETS
        if is_free and is_assigned(role, before) == is_assigned(role, after):
            return
        if role is not Role.ERROR and self._may_be_either(scope, before, after):
            self.reasons.add(Reason.OVERLAP)
            return
        if role is Role.OFFSET and self._ids.are_markers(scope, before, after):
            self.reasons.add(Reason.MARKERS)
            return
        self._add_difference(path, before, after, role is Role.ERROR)

    def _may_be_either(self, scope: Scope, before: Any, after: Any) -> bool:
        """Return whether either value is valid, as the request overlapped a change."""
        if not self._overlaps:
            return False
        at = ("partition", self._ids.topic_of(scope), scope.partition), ("group", scope.group)
        found = [self._overlaps[each] for each in at if each in self._overlaps]
        if not found:
            return False
        are_numbers = isinstance(before, int) and isinstance(after, int)
        return any(found) or not are_numbers or before < after

    def _list(
        self, leaf: ValueField, before: Sequence[Any], after: Sequence[Any], path: str, scope: Scope
    ) -> None:
        """Compare arrays of scalars, ignoring their order."""
        if leaf.role in policy.LAYOUT_ROLES:
            return
        if leaf.role in policy.COUNT_ONLY_ROLES and before != after and len(before) == len(after):
            self.reasons.add(Reason.COUNT)
            return
        mapped = [self._ids.captured(leaf.role, each, scope) for each in after]
        if list(before) == mapped:
            return
        if sorted(before, key=repr) == sorted(mapped, key=repr):
            self.reasons.add(Reason.ORDER)
        else:
            self._add_difference(path, before, mapped)

    def _embedded(self, before: Any, after: Any, path: str, scope: Scope) -> None:
        """Compare member metadata or assignments of a group."""
        part: MemberField = "assignment" if path.endswith("assignment") else "metadata"
        ours, theirs = (
            read_member(path, data or b"", part, *self._protocol) for data in (before, after)
        )
        if ours is None or theirs is None:
            self._add_difference(path, before, after)
        else:
            self._compare_embedded(ours, theirs, path, scope)

    def _compare_embedded(self, ours: Embedded, theirs: Embedded, path: str, scope: Scope) -> None:
        """Compare decoded embedded messages; undecodable ones byte by byte."""
        nodes = []
        for each in (ours, theirs):
            if each.value is None or each.schema is None or each.version is None:
                self._add_difference(path, ours.data, theirs.data)
                return
            nodes.append(layout_of(each.schema, each.version, policy.COMPARED_ROLES))
        assert ours.value is not None
        assert theirs.value is not None
        for one, other in zip(ours.inner, theirs.inner, strict=False):
            self._compare_embedded(one, other, f"{path}.{one.path}", scope)
            ours.value[one.path] = theirs.value[other.path] = None
        self._struct((nodes[0], nodes[1]), ours.value, theirs.value, path, scope)

    def _branch(
        self,
        twins: tuple[StructField, StructField],
        before: Any,
        after: Any,
        path: str,
        scope: Scope,
    ) -> None:
        branch, other = twins
        if (
            branch.name in policy.TASK_ARRAYS
            and after is not None
            and have_equal_task_counts(before, after)
        ):
            if before != after:
                self.reasons.add(Reason.COUNT)
        elif before is None or after is None:
            if before is not after:
                self._add_difference(path, before, after)
        elif not branch.is_list:
            self._struct((branch.layout, other.layout), before, after, path, scope)
        elif any(key.role in policy.LAYOUT_ROLES for key in branch.layout.keys):
            if branch.layout.keys[0].role is Role.DIRECTORY:
                # The directory of a replica is the choice of its broker.
                directories = _without_arrays(branch.layout), _without_arrays(other.layout)
                self._in_order(directories, before, after, path, scope)
        elif branch.layout.keys and other.layout.keys:
            self._by_keys((branch.layout, other.layout), before, after, path, scope)
        else:
            self._in_order((branch.layout, other.layout), before, after, path, scope)

    def _in_order(
        self,
        nodes: tuple[StructLayout, StructLayout],
        before: Sequence[_Body],
        after: Sequence[_Body],
        path: str,
        scope: Scope,
    ) -> None:
        """Compare arrays whose elements have no keys, by their positions."""
        for at, (old, new) in enumerate(zip(before, after, strict=False)):
            self._struct(nodes, old, new, f"{path}[{at}]", scope)
        for at, old in enumerate(before[len(after) :], len(after)):
            if path == policy.STATUS:
                self.reasons.add(Reason.READY)
            else:
                self._add_difference(f"{path}[{at}]", old, None)
        for at, new in enumerate(after[len(before) :], len(before)):
            if path in self._may_have_more:
                self.reasons.add(Reason.MORE)
            else:
                self._add_difference(f"{path}[{at}]", None, new)

    def _by_keys(
        self,
        nodes: tuple[StructLayout, StructLayout],
        before: Sequence[_Body],
        after: Sequence[_Body],
        path: str,
        scope: Scope,
    ) -> None:
        """Compare arrays whose elements have keys."""
        node, other = nodes
        old = index_by_key(self._ids, node, before, scope, is_live=False)
        new = index_by_key(self._ids, other, after, scope, is_live=True)
        if all(key.role in policy.ASSIGNED_ROLES for key in node.keys):
            # Live keys without a known mapping are matched by their order.
            lost = [key for key in old if key not in new]
            for key, stranger in zip(lost, [key for key in new if key not in old], strict=False):
                new[key] = new.pop(stranger)
        is_turned = [k for k in new if k in old] != [k for k in old if k in new]
        if is_turned and not _is_unordered(node):
            self.reasons.add(Reason.ORDER)
        array = path.rpartition(".")[2]
        for key, element in old.items():
            at = f"{path}[{key_text(key)}]"
            if key in new:
                self._struct(nodes, element, new[key], at, scope)
            elif self._may_be_either(scope, None, None):
                self.reasons.add(Reason.OVERLAP)  # whether anything has been committed yet
            elif element.get("is_internal"):
                self.reasons.add(Reason.INTERNAL)
            elif array in self._may_have_more & policy.INCREMENTAL_ARRAYS and not _fails(element):
                self.reasons.add(Reason.MORE)  # its records may come with the next poll
                self._compare_unpaired(node, element, scope, is_live=False)
            else:
                self._add_difference(at, element, None)
        for key, element in new.items():
            if key in old:
                continue
            may_be_either = self._may_be_either(scope, None, None)
            may_be_more = array in self._may_have_more or may_be_either
            if may_be_more and not (array in policy.INCREMENTAL_ARRAYS and _fails(element)):
                self.reasons.add(Reason.OVERLAP if may_be_either else Reason.MORE)
                self._compare_unpaired(other, element, scope, is_live=True)
            else:
                self._add_difference(f"{path}[{key_text(key)}]", None, element)

    def _add_difference(self, path: str, before: Any, after: Any, is_error: bool = False) -> None:
        alone = after if before is None else before if after is None else None
        is_default = isinstance(alone, Mapping) and is_default_setting(alone, alone)
        found = Difference(path, jsonable(before), jsonable(after), is_error, is_default)
        self.differences.append(found)


def _records_of(node: StructLayout) -> ValueField | None:
    """Return the field `records` if the struct has one of record batches."""
    leaf = next((each for each in node.members if each.name == "records"), None)
    return leaf if isinstance(leaf, ValueField) and leaf.role is Role.RECORDS else None


def _is_unordered(node: StructLayout) -> bool:
    """Return whether elements are topics or partitions of a Produce, whose order is random."""
    return any(member.name in policy.UNORDERED_FIELDS for member in node.members)


def _fails(element: _Body) -> bool:
    """Return whether a topic or partition of a Fetch has an error, or a partition in it."""
    inside = element.get("partitions") or ()
    return any(each.get("error_code") for each in (element, *inside))


def _without_arrays(node: StructLayout) -> StructLayout:
    leaves = tuple(member for member in node.members if isinstance(member, ValueField))
    return StructLayout(node.version, leaves, node.scope, node.keys)
