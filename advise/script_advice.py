"""Advice that users write: hooks of the kind `advice`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from inspect import cleandoc
from typing import TypeAlias

from advise.detectors.subject_judge import display_filter
from advise.registry.advice import ADVICES, CLIENTS, Advice, Rank
from advise.registry.advice_report import AdviceFinding, Subject
from dissector.engine.exchanges.exchange import Exchange
from dissector.errors import UsageError
from dissector.hooks.hook_functions import Hook, find_hooks
from dissector.hooks.hook_types import Advised
from dissector.summary.group_keys import host_of
from dissector.view.text.escape import VARIABLE_PARTS

MAX_FOUND = 1_000
"""Maximum number of findings of one exchange, and of different ones of a hook."""

TOO_MANY = f"more than {MAX_FOUND:,} different findings"


@dataclass(frozen=True, slots=True)
class ScriptAdvice(Advice):
    """
    An advice of a hook.

    Attributes:
        hook: The function that finds it.
    """

    hook: Hook


def script_advices(scripts: Iterable[str], warn: Callable[[str], None]) -> list[ScriptAdvice]:
    """
    Return the advices of scripts and of installed packages.

    Args:
        scripts: Names of scripts.
        warn: Gets a line for each installed hook that can't be loaded.

    Raises:
        UsageError: A script can't be run, or two advices have one name.
    """
    found: dict[str, ScriptAdvice] = {}
    for hook in find_hooks("advice", scripts, warn):
        each = _advice(hook)
        if each.id in ADVICES or each.id in found:
            raise UsageError(f"{hook.place}: there is an advice {each.id!r} already")
        found[each.id] = each
    return list(found.values())


def _advice(hook: Hook) -> ScriptAdvice:
    """Return the advice of a hook, by its name and its docstring."""
    id = hook.label.replace("_", "-")
    title, _, rest = cleandoc(hook.function.__doc__ or id).partition("\n")
    change = " ".join(rest.split()) or f"{hook.place} does not say"
    return ScriptAdvice(
        id,
        Rank.INFORMS,
        title.strip().rstrip("."),
        what=title.strip(),
        cost=change,
        settings=dict.fromkeys(CLIENTS, change),
        source=hook.place,
        limits={},
        hook=hook,
    )


_Key: TypeAlias = tuple[Rank, str, Subject]


@dataclass(slots=True)
class _Finding:
    """What was found several times: the first, and where all of them are."""

    first: Advised
    begin_ns: int
    end_ns: int
    packets: tuple[int, int]
    apis: set[str] = field(default_factory=set)
    count: int = 0


class ScriptJudge:
    """
    The findings of one hook, exchange by exchange.

    Attributes:
        advice: Its advice.
        judged: Number of exchanges that it was called with.
        unjudged: Why exchanges were not judged, with their number.
    """

    def __init__(self, advice: ScriptAdvice) -> None:
        self.advice = advice
        self.judged = 0
        self.unjudged: Counter[str] = Counter()
        self._found: dict[_Key, _Finding] = {}

    def add(self, exchange: Exchange) -> None:
        """Call the hook with an exchange; an exception is a reason why that was not judged."""
        hook = self.advice.hook
        try:
            found = [_checked(each) for each in hook.results(exchange, Advised, MAX_FOUND)]
        except (Exception, SystemExit) as error:
            self.unjudged[hook.failure(error)] += 1
            return
        self.judged += 1
        for each in found:
            self._note(exchange, each)

    def _note(self, exchange: Exchange, found: Advised) -> None:
        client = host_of(exchange.client)
        subject = Subject(exchange.client_id or "", client, "", found.topic, found.group)
        key = Rank(found.rank), VARIABLE_PARTS.sub("#", found.found), subject
        known = self._found.get(key)
        packet = exchange.request_packet or exchange.response_packet or 0
        time_ns = exchange.request_time_ns or exchange.response_time_ns or 0
        if known is None:
            if len(self._found) >= MAX_FOUND:
                self.unjudged[TOO_MANY] += 1
                return
            known = self._found[key] = _Finding(found, time_ns, time_ns, (packet, packet))
        known.count += 1
        known.begin_ns, known.end_ns = min(known.begin_ns, time_ns), max(known.end_ns, time_ns)
        known.packets = min(known.packets[0], packet), max(known.packets[1], packet)
        if exchange.api is not None:
            known.apis.add(exchange.api)

    @property
    def findings(self) -> Sequence[AdviceFinding]:
        """What was found so far."""
        return [
            AdviceFinding(
                replace(self.advice, rank=rank),
                subject,
                each.first.found,
                each.first.cost or self.advice.cost,
                each.count,
                "exchanges",
                1,
                each.count,
                each.begin_ns,
                each.end_ns,
                tuple(sorted({*each.packets})),
                display_filter(subject, sorted(each.apis)),
            )
            for (rank, _, subject), each in self._found.items()
        ]


def _checked(found: Advised) -> Advised:
    """
    Return what a hook found, in one line.

    Raises:
        ValueError: Its rank does not exist.
    """
    Rank(found.rank)
    return found._replace(
        found=_line(found.found),
        cost=_line(found.cost),
        topic=_line(found.topic),
        group=_line(found.group),
    )


def _line(text: object) -> str:
    return "" if text is None else " ".join(str(text).split())
