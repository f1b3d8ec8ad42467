"""Which rules apply to an observation, and which are only counted, by what screens proved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from conform.evidence.reporter import CurrentObservation, Reporter
from conform.registry.rule import FastCheck, Rule, RuleFunction
from conform.registry.rule_screen import PartitionCount, PlainCount, Screen, ScreenTest
from conform.registry.screened_columns import Ints, ScreenedPartitions
from conform.registry.verdict import Tally, Verdict
from conform.screens.plain_batches import CANONICAL, NAMES_TRANSACTION, PlainBatches
from conform.screens.window_screens import NOTHING, ScreenedWindow, WindowScreens, shape_of
from dissector.protocol.apis import api_name

PLAIN = 1
"""
What an exchange passed, for its batches: all of these are plain; with the bits of `HeaderFault`,
but for faults in their headers.
"""


class RuleGroup(NamedTuple):
    """Rules with the same fast check, or without one: functions, reporters and counts."""

    fast_check: FastCheck | None
    members: list[tuple[RuleFunction, Reporter, Tally]]


@dataclass(slots=True, eq=False)
class RulePlan:
    """
    The rules for exchanges of an API that passed the same screens, or for their batches.

    Attributes:
        groups: The rules to apply, grouped by their fast check.
        screened: The rules whose screen they passed.
        plain: The rules that count plain batches.
        reason: Why messages of the connection are missing; empty: none is.
        unjudged: The rules that can't judge such an exchange therefore, with the number of cases.
        rows: Such exchanges of the window that are not counted yet.
        needs_headers: Whether the rules to apply need only the headers of batches, which are plain.
    """

    groups: list[RuleGroup] = field(default_factory=list)
    screened: list[tuple[Screen, Tally]] = field(default_factory=list)
    plain: list[tuple[PlainCount, Tally]] = field(default_factory=list)
    reason: str = ""
    unjudged: list[tuple[int, Tally]] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    needs_headers: bool = False


def tests_of(rules: Sequence[Rule]) -> list[ScreenTest]:
    """Return what exchanges may pass, so that rules on them or on their batches are counted."""
    tests = [rule.screen.test for rule in rules if rule.screen]
    if any(rule.plain_batch for rule in rules):
        tests += [CANONICAL, NAMES_TRANSACTION]
    return tests


class RulePlans:
    """
    The plans of a judge, made when first asked.

    Args:
        verdict: The chosen rules, and their counts.
        current: The current observation.
        screens: The screens of these rules; see `tests_of`.
    """

    def __init__(
        self, verdict: Verdict, current: CurrentObservation, screens: WindowScreens
    ) -> None:
        self._verdict = verdict
        self._bits = screens.bits
        self._reporters = {
            rule.id: Reporter(rule, verdict, current, self._bit(rule)) for rule in verdict.rules
        }
        self._plans: dict[tuple[str, int | None, int, str], RulePlan] = {}
        self._shapes: list[int] = []
        self._batches: PlainBatches | None = None
        self._partitions: ScreenedPartitions | None = None
        self._counts: dict[PartitionCount, Ints] = {}

    def _bit(self, rule: Rule) -> int:
        """Return the bit of a rule's screen; 0 without one."""
        return self._bits[rule.screen.test] if rule.screen else 0

    def begin_window(self, screened: ScreenedWindow, batches: PlainBatches) -> None:
        """Begin a window: rows of plans are exchanges of it."""
        self._shapes, self._batches = screened.shape, batches
        self._partitions = screened.partitions
        self._counts.clear()

    def of(
        self, on: str, key: int | None, passed: int = NOTHING, incomplete_reason: str = ""
    ) -> RulePlan:
        """
        Return the rules for a kind of observation of an API that passed some screens.

        Its connection may be incomplete for a reason. Whoever asks judges such an observation.
        """
        found = self._plans.get((on, key, passed, incomplete_reason))
        if found is None:
            found = self._made(on, key, passed, incomplete_reason)
            self._plans[on, key, passed, incomplete_reason] = found
        return found

    def _made(self, on: str, key: int | None, passed: int, reason: str) -> RulePlan:
        plan = RulePlan(reason=reason, needs_headers=on == "batch" and bool(passed & PLAIN))
        api = None if key is None else api_name(key)
        groups: dict[FastCheck | None, RuleGroup] = {}
        for rule in self._verdict.rules:
            tally = self._verdict.tallies[rule.id]
            if rule.on != on or tally.is_stopped or (rule.apis and api not in rule.apis):
                continue
            if rule.screen and self._bit(rule) & passed:
                if reason and rule.screen.unjudged is not None and key is not None:
                    plan.unjudged.append((rule.screen.unjudged(key), tally))
                    if rule.screen.unjudged(key):
                        tally.unjudged[reason] += 0  # reasons are shown in the order of their first
                else:
                    plan.screened.append((rule.screen, tally))
            elif rule.plain_batch and passed & PLAIN and not rule.header_fault & passed:
                plan.plain.append((rule.plain_batch, tally))
            else:
                plan.needs_headers &= bool(rule.header_fault)
                group = groups.setdefault(rule.fast_check, RuleGroup(rule.fast_check, []))
                group.members.append((rule.call, self._reporters[rule.id], tally))
        plan.groups = list(groups.values())
        return plan

    def count(self) -> None:
        """Count what rules judged in the rows of all plans."""
        for plan in self._plans.values():
            if plan.screened:
                for number, count in Counter(self._shapes[row] for row in plan.rows).items():
                    shape = shape_of(number)
                    for screen, tally in plan.screened:
                        tally.judged += screen.judged(shape) * count
                for screen, tally in plan.screened:
                    if screen.count is not None:
                        tally.judged += int(self._counts_of(screen.count)[plan.rows].sum())
            if plan.plain and self._batches is not None:
                for batch_shape, count in self._batches.count(plan.rows):
                    for judged, tally in plan.plain:
                        tally.judged += judged(batch_shape) * count
            for cases, tally in plan.unjudged:
                if cases and plan.rows:
                    tally.unjudged[plan.reason] += cases * len(plan.rows)
            plan.rows.clear()

    def _counts_of(self, count: PartitionCount) -> Ints:
        """Return what a rule judges in each exchange of the window; rules may share it."""
        found = self._counts.get(count)
        if found is None and self._partitions is not None:
            found = self._counts[count] = count(self._partitions)
        assert found is not None, "a window has begun"
        return found

    def drop_stopped(self) -> None:
        """Count, then leave out the rules that were stopped."""
        self.count()
        self._plans.clear()
