"""Rules that users write: hooks of the kind `rule`, family Z."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import cleandoc
from typing import TYPE_CHECKING

from conform.registry.rank import Severity
from conform.registry.rule import Rule, RuleFunction, Side
from dissector.hooks.hook_functions import Hook, find_hooks
from dissector.hooks.hook_types import Violation

if TYPE_CHECKING:
    from conform.evidence.observation import Observation
    from conform.evidence.reporter import Reporter

FAMILY = "Z"

MAX_FOUND = 1_000
"""Maximum number of violations of one exchange that a hook may yield."""


def script_rules(scripts: Sequence[str], warn: Callable[[str], None]) -> list[Rule]:
    """
    Return the rules of scripts and of installed packages.

    Args:
        scripts: Names of scripts.
        warn: Gets a line for each installed hook that can't be loaded.

    Raises:
        UsageError: A script can't be run.
    """
    hooks = find_hooks("rule", scripts, warn)
    return [_rule(f"{FAMILY}{number:02}", hook) for number, hook in enumerate(hooks, 1)]


def _rule(id: str, hook: Hook) -> Rule:
    name = getattr(hook.function, "__name__", hook.name)
    lines = cleandoc(hook.function.__doc__ or f"{hook.name}: {name}").splitlines()
    return Rule(
        id,
        title=lines[0].rstrip("."),
        severity=Severity.ERROR,
        source=hook.place,
        asks=" ".join(line.strip() for line in lines if line.strip()),
        example="what the function yields",
        on="exchange",
        apis=(),
        call=_call_of(hook),
    )


def _call_of(hook: Hook) -> RuleFunction:
    def call(observation: Observation, reporter: Reporter) -> None:
        try:
            found = hook.results(observation.exchange, Violation, MAX_FOUND)
            violations = [_checked(each) for each in found]
        except (Exception, SystemExit) as error:
            reporter.count_unjudged(hook.failure(error))
            return
        reporter.count_judged()
        for each in violations:
            reporter.report_violation(
                Side(each.side), each.found, path=each.field, severity=Severity(each.severity)
            )

    return call


def _checked(found: Violation) -> Violation:
    """
    Return a violation that can be reported.

    Raises:
        ValueError: Its side or severity does not exist.
    """
    Side(found.side), Severity(found.severity)
    return found._replace(found=" ".join(str(found.found).split()), field=str(found.field))
