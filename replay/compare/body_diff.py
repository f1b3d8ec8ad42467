"""Full comparison of two response bodies: walks both by their layouts, and maps ids."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from cluster.fields.field_layout import (
    Scope,
    StructField,
    StructLayout,
    ValueField,
    records_field,
    without_arrays,
)
from cluster.fields.kafka_enums import INTERNAL_TOPICS
from cluster.fields.roles import layout_of
from dissector.protocol.embedded.membership.group_members import MemberField, read_member
from dissector.protocol.embedded.reading import Embedded
from dissector.protocol.error_codes import error_name
from dissector.protocol.field_roles import Role
from dissector.view.text.value_text import jsonable
from replay.compare import comparison_policy as policy
from replay.compare.config_sources import are_defaults, is_default_setting
from replay.compare.record_diff import compare_records, data_offsets, wrong_crcs
from replay.compare.tolerances import (
    has_error,
    have_equal_task_counts,
    have_same_error,
    is_assigned,
    is_null_for_empty,
    is_unordered,
)
from replay.mapping.element_keys import index_by_key, key_text
from replay.mapping.id_map import IdMap
from replay.mapping.reader_accounts import ReturnedRecords
from replay.model.offset_ranges import Ranges
from replay.model.outcome import Difference, Reason
from replay.order.concurrent_changes import Overlaps
from replay.sessions.retry_policy import TRANSITIONAL_STATES

_Body = Mapping[str, Any]
_Elements = Sequence[_Body]
_Layouts = tuple[StructLayout, StructLayout]


class BodyDiff:
    """
    Compares a captured body with a live one.

    Args:
        ids: The id mapping.
        may_have_more: Names of arrays in which the target may have additional elements.
        created_topics: Topics created for the replay, by their captured names.
        overlaps: Partitions and groups that changed during the captured request.
        show_secrets: Whether credentials in records may be shown.

    Attributes:
        differences: The differences so far.
        reasons: Reasons why non-identical parts are equivalent.
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

    def compare(self, layouts: _Layouts, captured: _Body, live: _Body, outer: Scope) -> None:
        """
        Compare two bodies.

        Args:
            layouts: The fields of both, each of its version.
            captured: The captured body.
            live: The body of the target.
            outer: The scope of the captured body, from its request.
        """
        self._protocol = captured.get("protocol_type"), captured.get("protocol_name")
        self._struct(layouts, captured, live, "", outer)

    def _struct(
        self, layouts: _Layouts, captured: _Body, live: _Body, path: str, outer: Scope
    ) -> None:
        layout, other = layouts
        scope = outer.inside(layout, captured)
        live_members = (
            None if layout is other else {member.name: member for member in other.members}
        )
        first_difference = len(self.differences)
        if sooner := self._why_sooner(layout, captured, live, scope):
            self.reasons.add(sooner)
            return
        same_extent = records_field(layout) and self._records(captured, live, path, scope)
        for member in layout.members:
            name = member.name
            live_member = member if live_members is None else live_members.get(name)
            if live_member is None or name not in captured or name not in live:
                continue
            below = f"{path}.{name}" if path else name
            before, after = captured[name], live[name]
            versions = layout.version, other.version
            has_moved = (
                name in policy.VOLATILE_OFFSETS
                and before != after
                and have_same_error(layout, captured, live)
            )
            if has_moved or is_null_for_empty(member.field, versions, before, after):
                self.reasons.add(Reason.REFUSED if has_moved else Reason.NULL)
            elif isinstance(member, ValueField):
                is_setting = member.role is Role.CONFIG_VALUE
                if is_setting and captured.get("name") in policy.BROKER_SETTINGS:
                    continue  # every broker has its own
                self._leaf(member, before, after, below, scope)
            elif same_extent is not False and isinstance(live_member, StructField):
                self._branch((member, live_member), before, after, below, scope)
        errors = [each for each in self.differences[first_difference:] if each.is_error]
        if any("." not in each.path[len(path) + 1 :] for each in errors):
            # Other differences in the struct follow from the different error.
            self.differences[first_difference:] = errors
        if is_default_setting(captured, live):
            changed = self.differences[first_difference:]
            self.differences[first_difference:] = [
                replace(each, is_default=True) for each in changed
            ]

    def _why_sooner(
        self, layout: StructLayout, captured: _Body, live: _Body, scope: Scope
    ) -> Reason | None:
        """Return why the target may have succeeded where the captured broker had not, if so."""
        for leaf in layout.members:
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

    def have_equal_records(self, captured: _Body, live: _Body, scope: Scope) -> bool:
        """Compare the records of two partitions; return whether they are equal."""
        return self._records(captured, live, "", scope) and not self.differences

    def _records(self, captured: _Body, live: _Body, path: str, scope: Scope) -> bool:
        """Compare records; return whether both have the same offsets."""
        topic, partition = self._ids.topic_of(scope), scope.partition
        log = None
        if topic is not None and partition is not None:
            log = self._ids.offsets.log(topic, partition)
        before, after = captured.get("records"), live.get("records")
        given = f"{path}.records", topic, before, after, log, self._show_secrets
        diff = compare_records(*given, self._ids.producers)
        self.differences += diff.differences
        if not diff.same_extent:
            self.reasons.add(Reason.RECORDS)
        self._watermarks(captured, live, path, diff.starts)
        if topic is not None and partition is not None:
            expected = Ranges() if live.get("error_code") else diff.captured
            self.returned.append(ReturnedRecords(topic, partition, expected, diff.live))
        return diff.same_extent

    def _watermarks(
        self, captured: _Body, live: _Body, path: str, starts: tuple[int, int] | None
    ) -> None:
        """
        Compare high watermark and last stable offset with the records: neither lies below them.

        A broker takes both before it reads (Partition.readRecords of Kafka 3.9), so they may be as
        low as the first of the records. An open transaction may end meanwhile.
        """
        stable = () if self._ids.ended_transactions else ("last_stable_offset",)
        for name in ("high_watermark", *stable):
            before, after = captured.get(name, -1), live.get(name, -1)
            if starts and before >= starts[0] and 0 <= after < starts[1]:
                self._add_difference(f"{path}.{name}", before, after)

    def _compare_unpaired(
        self, layout: StructLayout, element: _Body, path: str, scope: Scope, is_live: bool
    ) -> None:
        """Add the records of an element that the other response lacks to `returned`."""
        scope = scope.inside(layout, element)
        for member in layout.members:
            if isinstance(member, StructField) and member.is_list:
                for each in element.get(member.name) or ():
                    self._compare_unpaired(member.layout, each, path, scope, is_live)
        if records_field(layout) is None or not element.get("records"):
            return
        scope = self._ids.captured_scope(scope) if is_live else scope
        topic, partition = self._ids.topic_of(scope), scope.partition
        if topic is not None and partition is not None:
            log = self._ids.offsets.log(topic, partition) if is_live else None
            given, none = data_offsets(element["records"], log), Ranges()
            self.differences += wrong_crcs(path, element["records"], log) if is_live else ()
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
        captured, live = (
            read_member(path, data or b"", part, *self._protocol) for data in (before, after)
        )
        if captured is None or live is None:
            self._add_difference(path, before, after)
        else:
            self._compare_embedded(captured, live, path, scope)

    def _compare_embedded(
        self, captured: Embedded, live: Embedded, path: str, scope: Scope
    ) -> None:
        """Compare decoded embedded messages; undecodable ones byte by byte."""
        layouts = []
        for each in (captured, live):
            if each.value is None or each.schema is None or each.version is None:
                self._add_difference(path, captured.data, live.data)
                return
            layouts.append(layout_of(each.schema, each.version, policy.COMPARED_ROLES))
        assert captured.value is not None
        assert live.value is not None
        for inner, live_inner in zip(captured.inner, live.inner, strict=False):
            self._compare_embedded(inner, live_inner, f"{path}.{inner.path}", scope)
            captured.value[inner.path] = live.value[live_inner.path] = None
        self._struct((layouts[0], layouts[1]), captured.value, live.value, path, scope)

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
                directories = without_arrays(branch.layout), without_arrays(other.layout)
                self._in_order(directories, before, after, path, scope)
        elif branch.layout.keys and other.layout.keys:
            self._by_keys((branch.layout, other.layout), before, after, path, scope)
        else:
            self._in_order((branch.layout, other.layout), before, after, path, scope)

    def _in_order(
        self, layouts: _Layouts, before: _Elements, after: _Elements, path: str, scope: Scope
    ) -> None:
        """Compare arrays without element keys, by position."""
        for at, (old, new) in enumerate(zip(before, after, strict=False)):
            self._struct(layouts, old, new, f"{path}[{at}]", scope)
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
        self, layouts: _Layouts, before: _Elements, after: _Elements, path: str, scope: Scope
    ) -> None:
        """Compare arrays with element keys."""
        layout, other = layouts
        old = index_by_key(self._ids, layout, before, scope, is_live=False)
        new = index_by_key(self._ids, other, after, scope, is_live=True)
        if all(key.role in policy.ASSIGNED_ROLES for key in layout.keys):
            # Live keys without a known mapping are matched by their order.
            unpaired = [key for key in old if key not in new]
            for key, unmatched in zip(
                unpaired, [key for key in new if key not in old], strict=False
            ):
                new[key] = new.pop(unmatched)
        is_reordered = [k for k in new if k in old] != [k for k in old if k in new]
        if is_reordered and not is_unordered(layout):
            self.reasons.add(Reason.ORDER)
        array = path.rpartition(".")[2]
        for key, element in old.items():
            at = f"{path}[{key_text(key)}]"
            if key in new:
                self._struct(layouts, element, new[key], at, scope)
            elif self._may_be_either(scope, None, None):
                self.reasons.add(Reason.OVERLAP)  # whether anything has been committed yet
            elif element.get("is_internal"):
                self.reasons.add(Reason.INTERNAL)
            elif array in self._may_have_more & policy.INCREMENTAL_ARRAYS and not has_error(
                element
            ):
                self.reasons.add(Reason.MORE)  # its records may follow in the next poll
                self._compare_unpaired(layout, element, at, scope, is_live=False)
            else:
                self._add_difference(at, element, None)
        for key, element in new.items():
            if key in old:
                continue
            may_be_either = self._may_be_either(scope, None, None)
            may_be_more = array in self._may_have_more or may_be_either
            if may_be_more and not (array in policy.INCREMENTAL_ARRAYS and has_error(element)):
                self.reasons.add(Reason.OVERLAP if may_be_either else Reason.MORE)
                self._compare_unpaired(other, element, path, scope, is_live=True)
            else:
                self._add_difference(f"{path}[{key_text(key)}]", None, element)

    def _add_difference(self, path: str, before: Any, after: Any, is_error: bool = False) -> None:
        only = after if before is None else before if after is None else None
        is_default = isinstance(only, Mapping) and is_default_setting(only, only)
        is_default |= are_defaults(path.rpartition(".")[2], before, after)
        difference = Difference(path, jsonable(before), jsonable(after), is_error, is_default)
        self.differences.append(difference)
