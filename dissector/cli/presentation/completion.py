"""Completion of values in shells: names of filters, columns and APIs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

# Compiled where a shell completes: each command loads this module.
_LAST_WORD = r"[\w.]*$"
_SCRIPT, _HOOKED = "--script", "hook."
_AFTER_API = r"\bapi\s*(?:==|!=|eq|ne|in\s*\{[^}]*)\s*\w*$"


def complete_words(
    words: Callable[[], Iterable[str]], *, hooks: bool = False
) -> Callable[[str, str, Sequence[str]], list[str]]:
    """
    Return a function that completes a word, or the last word of a list with commas.

    Args:
        words: Returns the words.
        hooks: Whether columns of hooks are words too.
    """

    def complete(command: str, incomplete: str, before: Sequence[str] = ()) -> list[str]:
        first, comma, word = incomplete.rpartition(",")
        known = (*words(), *(_hook_columns(before) if hooks else ()))
        return [f"{first}{comma}{each}" for each in known if each.startswith(word)]

    return complete


def complete_filter(command: str, incomplete: str, before: Sequence[str] = ()) -> list[str]:
    """Complete the last name of a filter, the name of an API after `api ==`, or `@NAME`."""
    from dissector.cli.settings.saved_filters import completed
    from dissector.filter import field_list

    if saved := completed(incomplete):
        return saved
    fields = (name for name, _, _ in field_list(records=command == "records"))
    first, names = filter_words(incomplete, (*fields, *_hook_columns(before)))
    return [first + name for name in names]


def filter_words(incomplete: str, names: Iterable[str]) -> tuple[str, list[str]]:
    """Return the text before the last word of a filter, and its completions."""
    found = re.search(_LAST_WORD, incomplete)
    word = found[0] if found else ""
    before = incomplete[: len(incomplete) - len(word)]
    if re.search(_AFTER_API, incomplete):
        return before, complete_api("", word)
    return before, [name for name in names if name.startswith(word)]


def complete_columns(command: str, incomplete: str, before: Sequence[str] = ()) -> list[str]:
    """Complete the last column of a list; once it has a dot, also fields."""
    from dissector.cli.presentation.listing import CATALOGUES

    first, comma, word = incomplete.rpartition(",")
    sign = "-" if word.startswith("-") else ""
    word = word.removeprefix("-")
    names: Iterable[str] = (each.name for each in CATALOGUES.get(command, ()))
    if "." in word:
        from dissector.filter import field_list

        names = (name for name, _, _ in field_list(records=command == "records"))
    known = (*names, *_hook_columns(before))
    return [f"{first}{comma}{sign}{name}" for name in known if name.startswith(word)]


def _hook_columns(before: Sequence[str]) -> Iterator[str]:
    """Yield the columns of the scripts that the words before name; no script is run."""
    from dissector.hooks.script_files import written_columns

    for option, word in zip(("", *before), before, strict=False):
        if option == _SCRIPT:
            yield from map(_HOOKED.__add__, written_columns(word))
        elif word.startswith(f"{_SCRIPT}="):
            yield from map(_HOOKED.__add__, written_columns(word.partition("=")[2]))


def complete_api(command: str, incomplete: str, before: Sequence[str] = ()) -> list[str]:
    """Complete the name of an API, in any case."""
    from dissector.protocol.apis import api_keys

    return [name for name in api_keys() if name.lower().startswith(incomplete.lower())]
