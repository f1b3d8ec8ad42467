"""Group members: the mapping of their ids, and of their generations or epochs."""

from __future__ import annotations

from dataclasses import dataclass, field

MAX_GENERATIONS = 64
"""Generations or epochs kept for each member."""


@dataclass(slots=True)
class _Generations:
    """Mapping of one member's generations or epochs, in one direction."""

    by_number: dict[int, int] = field(default_factory=dict)

    def learn(self, generation: int, other: int) -> None:
        self.by_number.pop(generation, None)
        self.by_number[generation] = other
        if len(self.by_number) > MAX_GENERATIONS:
            del self.by_number[next(iter(self.by_number))]


class MemberMap:
    """Members of a run, in both directions, by the captured names of their groups."""

    def __init__(self) -> None:
        self._live: dict[tuple[str, str], str] = {}
        self._captured: dict[tuple[str, str], str] = {}
        self._live_generations: dict[tuple[str, str], _Generations] = {}
        self._captured_generations: dict[tuple[str, str], _Generations] = {}

    def learn(self, group: str, captured: str, live: str) -> None:
        """Learn the id that the target gave to a member."""
        if captured and live:
            self._live[group, captured] = live
            self._captured[group, live] = captured

    def knows(self, group: str, member: str) -> bool:
        """Return whether the target has an id for a captured member."""
        return (group, member) in self._live

    def live(self, group: str, member: str) -> str:
        """Return the live id of a member: the captured one if the client chose it itself."""
        return self._live.get((group, member), member)

    def captured(self, group: str, member: str) -> str:
        """Return the captured id of a member."""
        return self._captured.get((group, member), member)

    def learn_generation(self, group: str, member: str, captured: int, live: int) -> None:
        """Learn the live generation or epoch of a member, given by its captured id."""
        if min(captured, live) > 0:
            for key in ((group, member), (group, "")):
                self._live_generations.setdefault(key, _Generations()).learn(captured, live)
                self._captured_generations.setdefault(key, _Generations()).learn(live, captured)

    def learn_next_generation(self, group: str, member: str, live: int) -> None:
        """Learn a live generation without a separate captured response: it is the next one."""
        generations = self._live_generations.get((group, member))
        if generations is not None and generations.by_number:
            self.learn_generation(group, member, max(generations.by_number) + 1, live)

    def live_generation(self, group: str, member: str, captured: int) -> int:
        """
        Return the live generation or epoch.

        For an unknown one this is the member's newest. 0 and negative values are not epochs but a
        joining, leaving or absent member; they are returned unchanged.
        """
        return (
            captured
            if captured <= 0
            else _find_generation(self._live_generations, group, member, captured)
        )

    def captured_generation(self, group: str, member: str, live: int) -> int:
        """Return the captured generation or epoch."""
        return (
            live if live <= 0 else _find_generation(self._captured_generations, group, member, live)
        )


def _find_generation(
    members: dict[tuple[str, str], _Generations], group: str, member: str, generation: int
) -> int:
    generations = members.get((group, member)) or members.get((group, ""))
    if generations is None:
        return generation
    found = generations.by_number.get(generation)
    return next(reversed(generations.by_number.values())) if found is None else found
