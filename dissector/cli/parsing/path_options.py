"""The paths in the options of a command, checked before it starts."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_args

from dissector.file_roles import NamedPath, Reads, Writes, check_outputs


def run_checked(command: Callable[..., Any], values: Mapping[str, Any]) -> Any:
    """
    Run a command if none of its outputs is an input or another output.

    Raises:
        UsageError: One is; nothing was written.
    """
    check_outputs(list(named_paths(command, values)))
    return command(**values)


def named_paths(command: Callable[..., Any], values: Mapping[str, Any]) -> Iterator[NamedPath]:
    """Yield the paths in the values of a command's parameters."""
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        role = role_of(parameter)
        if role is None:
            continue
        value = values.get(parameter.name)
        if value is None and isinstance(role, Reads) and role.variable:
            value = list(filter(None, os.environ.get(role.variable, "").split(os.pathsep)))
        for each in value if isinstance(value, list | tuple) else [value]:
            if each is not None:
                yield NamedPath(str(each), name_of(parameter), role)


def role_of(parameter: inspect.Parameter) -> Reads | Writes | None:
    """Return the declared role of a parameter; None if it names no path."""
    _, *metadata = get_args(parameter.annotation) or (None,)
    return next((each for each in metadata if isinstance(each, Reads | Writes)), None)


def name_of(parameter: inspect.Parameter) -> str:
    """Return the name of an option as typed, or the word for an argument."""
    _, *metadata = get_args(parameter.annotation) or (None,)
    for each in metadata:  # ours, or Typer's
        # In `Annotated` Typer keeps the first name as the default.
        names = getattr(each, "names", None) or (
            getattr(each, "default", None),
            *(getattr(each, "param_decls", None) or ()),
        )
        if option := next((name for name in names if str(name).startswith("-")), None):
            return str(option)
        settings = getattr(each, "settings", None) or {}
        metavar = settings.get("metavar") or getattr(each, "metavar", None) or ""
        if metavar.endswith("..."):
            return str(metavar).removesuffix("...")
    return "--" + parameter.name.replace("_", "-")
