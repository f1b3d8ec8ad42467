"""The built-in commands, loaded on demand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

COMMANDS = (
    *("dissect", "pairs", "streams", "records", "stats", "groups", "upgrade"),
    *("export", "schema", "demo"),
)
"""Built-in commands; each is a function in the module of the same name."""

_ROOMS = {"groups": "answers.", "upgrade": "answers."}
"""The rooms of commands in subrooms."""


def command_function(name: str) -> Callable[..., Any]:
    """Return the function of a built-in command."""
    # Imported one by one, so that no command waits for the imports of the others.
    module = import_module(f"dissector.cli.{_ROOMS.get(name, '')}{name}")
    command: Callable[..., Any] = getattr(module, name)
    return command


def command_name(arguments: Sequence[str]) -> str | None:
    """Return the name of the command in the arguments."""
    return next((word for word in arguments if not word.startswith("-")), None)
