"""Keys and values that hooks of users decode, before all formats of ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dissector.hooks.hook_functions import Hook, find_hooks
from dissector.hooks.hook_types import Decoded, Record
from dissector.values.json_values import compact_json


class HookedValue(NamedTuple):
    """What a hook made of a key or a value: see `DecodedValue`."""

    format: str
    schema: str | None = None
    value: Any = None
    text: str | None = None
    problem: str | None = None


class HookedValues:
    """
    The hooks for keys and values.

    Args:
        scripts: Names of scripts.
        warn: Gets a line for each hook that can't be loaded.

    Raises:
        UsageError: A script can't be run.
    """

    def __init__(self, scripts: Sequence[str], warn: Callable[[str], None]) -> None:
        self._keys, self._values = (
            tuple(find_hooks(kind, scripts, warn)) for kind in ("key", "value")
        )

    def __bool__(self) -> bool:
        return bool(self._keys or self._values)

    def are_for(self, *, is_key: bool) -> bool:
        """Return whether there are hooks for keys, or for values."""
        return bool(self._keys if is_key else self._values)

    def read(self, record: Record, *, is_key: bool) -> HookedValue | None:
        """Return what the first hook that returns anything makes of it; None if none does."""
        for hook in self._keys if is_key else self._values:
            try:
                found = hook.function(record)
            except (Exception, SystemExit) as error:
                return HookedValue(hook.name, problem=hook.failure(error))
            if found is not None:
                return _value(hook, found)
        return None


def _value(hook: Hook, found: Any) -> HookedValue:
    """Return the result of a hook; one that JSON does not have is a problem."""
    decoded = found if isinstance(found, Decoded) else Decoded(found)
    name = str(decoded.format or hook.name)
    schema = None if decoded.schema is None else str(decoded.schema)
    try:
        text = compact_json(decoded.value)
    except (TypeError, ValueError, RecursionError) as error:
        problem = f"{hook.place}: its value is none of JSON's: {type(error).__name__}"
        return HookedValue(name, schema, problem=problem)
    return HookedValue(name, schema, decoded.value, text)
