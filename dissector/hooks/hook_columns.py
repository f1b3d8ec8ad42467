"""Columns that hooks compute of an exchange: `hook.NAME` in filters and `--columns`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from dissector.errors import UsageError, suggestion
from dissector.hooks.hook_functions import Hook, find_hooks

_PLAIN = (str, int, bool, type(None))


class HookColumns:
    """
    The hooks of the kind `column`, by their labels.

    Attributes:
        failures: Why columns have no value, with the number of calls.
    """

    def __init__(self, scripts: Iterable[str], warn: Callable[[str], None]) -> None:
        """
        Load the hooks.

        Args:
            scripts: Names of scripts.
            warn: Gets a line for each installed hook that can't be loaded.

        Raises:
            UsageError: A script can't be run, or two columns have one name.
        """
        self._hooks: dict[str, Hook] = {}
        self.failures: Counter[str] = Counter()
        for hook in find_hooks("column", scripts, warn):
            if hook.label in self._hooks:
                raise UsageError(f"{hook.place}: there is a column hook.{hook.label} already")
            self._hooks[hook.label] = hook

    def check(self, label: str) -> None:
        """
        Check that there is a column.

        Raises:
            UsageError: There is none.
        """
        if label not in self._hooks:
            hint = suggestion(label, self._hooks)
            raise UsageError(f"hook.{label}: no function of --script is column_{label}{hint}")

    @property
    def notices(self) -> list[str]:
        """Lines about failures."""
        return [f"{reason}, {count:,} times" for reason, count in self.failures.most_common()]

    def of(self, argument: object) -> HookCells:
        """Return the columns of an exchange, each computed when it is read."""
        return HookCells(self._hooks, argument, self.failures)


class HookCells(Mapping[str, Any]):
    """Values by label; a hook that fails has none."""

    def __init__(self, hooks: Mapping[str, Hook], argument: object, failures: Counter[str]) -> None:
        self._hooks, self._argument, self._failures = hooks, argument, failures
        self._change: Callable[[Any], Any] | None = None

    def changed(self, change: Callable[[Any], Any]) -> HookCells:
        """Return the values as a function changes them."""
        cells = HookCells(self._hooks, self._argument, self._failures)
        cells._change = change
        return cells

    def __getitem__(self, label: str) -> Any:
        hook = self._hooks[label]
        try:
            value = _plain(hook.function(self._argument))
        except (Exception, SystemExit) as error:
            self._failures[f"hook.{label}: {hook.failure(error)}"] += 1
            return None
        return value if self._change is None else self._change(value)

    def __contains__(self, label: object) -> bool:
        return label in self._hooks  # without a call

    def __iter__(self) -> Iterator[str]:
        return iter(self._hooks)

    def __len__(self) -> int:
        return len(self._hooks)


def _plain(value: Any) -> Any:
    """Return a value in the types of JSON; others are TypeError or ValueError."""
    return value if type(value) in _PLAIN else json.loads(json.dumps(value, allow_nan=False))
