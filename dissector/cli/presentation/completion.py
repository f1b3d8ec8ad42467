"""Completion of values in shells: names of filters, columns and APIs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping

from dissector.cli.parsing.parameters import Invocation

VARIABLE = "_KAFKASHARK_COMPLETE"
"""Set by the shell's completion, as Click names it."""

# Compiled where a shell completes: each command loads this module.
_LAST_WORD = r"[\w.]*$"
_AFTER_API = r"\bapi\s*(?:==|!=|eq|ne|in\s*\{[^}]*)\s*\w*$"


def typed_words(environment: Mapping[str, str]) -> list[str]:
    """Return the words of the command line to complete, without the program's name."""
    line = environment.get("_TYPER_COMPLETE_ARGS") or environment.get("COMP_WORDS", "")
    words = line.split()[1:]
    # The last word is still being typed: a command's name may not be whole.
    return words if len(words) > 1 or line[-1:].isspace() else []


def is_completing() -> bool:
    """Return whether a shell requests completions."""
    return VARIABLE in os.environ


def complete_words(words: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return a function that completes a word, or the last word of a list with commas."""

    def complete(incomplete: str) -> list[str]:
        before, comma, word = incomplete.rpartition(",")
        return [f"{before}{comma}{each}" for each in words() if each.startswith(word)]

    return complete


def complete_filter(ctx: Invocation, incomplete: str) -> list[str]:
    """Complete the last name of a filter, or the name of an API after `api ==`."""
    from dissector.filter import field_list

    fields = field_list(records=ctx.info_name == "records")
    before, names = filter_words(incomplete, (name for name, _, _ in fields))
    return [before + name for name in names]


def filter_words(incomplete: str, names: Iterable[str]) -> tuple[str, list[str]]:
    """Return the text before the last word of a filter, and its completions."""
    found = re.search(_LAST_WORD, incomplete)
    word = found[0] if found else ""
    before = incomplete[: len(incomplete) - len(word)]
    if re.search(_AFTER_API, incomplete):
        return before, complete_api(word)
    return before, [name for name in names if name.startswith(word)]


def complete_columns(ctx: Invocation, incomplete: str) -> list[str]:
    """Complete the last column of a list; once it has a dot, also fields."""
    from dissector.cli.presentation.listing import CATALOGUES
    from dissector.filter import field_list

    before, comma, word = incomplete.rpartition(",")
    sign = "-" if word.startswith("-") else ""
    word = word.removeprefix("-")
    names: Iterable[str] = (each.name for each in CATALOGUES.get(str(ctx.info_name), ()))
    if "." in word:
        names = (name for name, _, _ in field_list(records=ctx.info_name == "records"))
    return [f"{before}{comma}{sign}{name}" for name in names if name.startswith(word)]


def complete_api(incomplete: str) -> list[str]:
    """Complete the name of an API, in any case."""
    from dissector.protocol.apis import api_keys

    return [name for name in api_keys() if name.lower().startswith(incomplete.lower())]
