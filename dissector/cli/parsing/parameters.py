"""
Declarations of options and arguments, as Typer's, which is loaded only where a command needs it.

They stand in `Annotated`, like Typer's own; `typer_commands` translates them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypedDict, Unpack


class Invocation(Protocol):
    """The part of the context for callbacks and completions, under the name `ctx`."""

    info_name: str | None


class Settings(TypedDict, total=False):
    """Settings of a parameter; their names and meanings are Typer's."""

    metavar: str
    help: str
    show_default: bool
    min: float
    max: float
    is_eager: bool
    callback: Callable[..., Any]
    autocompletion: Callable[..., Iterable[str]]


class Parameter:
    """
    An option or argument of a command.

    Attributes:
        names: Its names on the command line.
        settings: The given settings; the others have Typer's defaults.
    """

    __slots__ = ("names", "settings")

    def __init__(self, *names: str, **settings: Unpack[Settings]) -> None:
        self.names = names
        self.settings = settings


class Option(Parameter):
    """An option; its names begin with a minus sign."""


class Argument(Parameter):
    """An argument, given by its place."""
