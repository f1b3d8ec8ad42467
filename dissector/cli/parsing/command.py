"""A Typer command with options of several words."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand


class Command(TyperCommand):
    """
    A command with options of several words, as many as in their metavar.

    Typer has no repeatable options of several words; Click, below it, has.
    """

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        for each in self.params:
            words = (each.metavar or "").split() if each.param_type_name == "option" else ()
            if len(words) > 1:
                each.nargs = len(words)
