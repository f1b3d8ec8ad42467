"""The help of the program and its commands, made of the declarations."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from textwrap import wrap

from dissector.cli.parsing.declarations import REQUIRED, Command, Option
from dissector.cli.presentation.examples import EXAMPLES

MIN_WIDTH, DEFAULT_WIDTH, MAX_WIDTH = 50, 80, 100
_TITLE_WIDTH = 24
_INDENT = "  "
_NO_BREAK = "\xa0"


def help_lines(command: Command) -> Iterator[str]:
    """Yield the help of a command."""
    width = _width()
    arguments = [each for each in command.options.declared().values() if not each.names]
    words = ["[OPTIONS]", *map(_usage, arguments)]
    yield f"Usage: {command.program} {' '.join(words)}"
    for paragraph in paragraphs(command.help):
        yield ""
        yield from _wrapped(paragraph, width, _INDENT)
    yield from _section(
        "Arguments", ((title_of(each), meaning_of(each)) for each in arguments), width
    )
    for heading, options in option_sections(command).items():
        yield from _section(
            heading, ((title_of(each), meaning_of(each)) for each in options), width
        )
    if examples := EXAMPLES.get(command.name):
        yield from ("", "Examples:", *(f"{_INDENT}kafkashark {each}" for each in examples))


def program_help_lines(program: Command, commands: Iterable[Command]) -> Iterator[str]:
    """Yield the help of the program, with its commands."""
    width = _width()
    yield f"Usage: {program.program} [OPTIONS] COMMAND [ARGS]..."
    yield f"       {program.program} CAPTURE... [OPTIONS], as findings"
    yield from ("", f"{_INDENT}{program.help}")
    for heading, options in option_sections(program).items():
        yield from _section(
            heading, ((title_of(each), meaning_of(each)) for each in options), width
        )
    rows = ((each.name, next(paragraphs(each.help), "")) for each in commands)
    yield from _section("Commands", rows, width)


def paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a docstring, each in one line."""
    yield from (" ".join(each.split()) for each in text.split("\n\n"))


def option_sections(command: Command) -> dict[str, list[Option]]:
    """Return the options of a command by heading, without its arguments."""
    found: dict[str, list[Option]] = {}
    for heading, declared in command.options.sections():
        if named := [each for each in declared.values() if each.names]:
            found.setdefault(heading, []).extend(named)
    return found


def title_of(declared: Option) -> str:
    """Return the names of an option with the word for its value, or the word for an argument."""
    if declared.default is True:
        (name,) = declared.names
        return f"{name}, --no-{name.removeprefix('--')}"
    return " ".join(filter(None, (", ".join(declared.names), declared.metavar)))


def meaning_of(declared: Option) -> str:
    """Return the help of an option with its default and its limits."""
    default = declared.default
    notes = []
    if default is REQUIRED:
        notes.append("required")
    elif default and default is not True:
        notes.append(f"default: {default}")
    notes += filter(None, [declared.limits])
    # Kept on one line.
    note = "; ".join(notes).replace(" ", _NO_BREAK)
    return f"{declared.help} [{note}]" if notes else declared.help


def _row(declared: Option) -> tuple[str, str]:
    return title_of(declared), meaning_of(declared)


def _usage(argument: Option) -> str:
    metavar = argument.metavar
    is_optional = argument.default is not REQUIRED and not metavar.startswith("[")
    return f"[{metavar}]" if is_optional else metavar


def _section(heading: str, rows: Iterable[tuple[str, str]], width: int) -> Iterator[str]:
    """Yield the lines of a table with two columns."""
    found = list(rows)
    if not found:
        return
    yield from ("", f"{heading}:")
    fitting = [len(title) for title, _ in found if len(title) <= _TITLE_WIDTH]
    column = max(fitting, default=_TITLE_WIDTH)
    indent = " " * (column + 2 * len(_INDENT))
    for title, text in found:
        lines = _wrapped(text, width, indent)
        if len(title) <= column:
            lines[0] = f"{_INDENT}{title:<{column}}{lines[0][column + len(_INDENT) :]}"
        else:
            yield f"{_INDENT}{title}"
        yield from lines


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    # A name such as --sasl-secret stays whole, so that it can be searched and copied.
    lines = wrap(
        text, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )
    return [line.replace(_NO_BREAK, " ") for line in lines] or [indent]


def _width() -> int:
    """Return the width of lines; `shutil` would load all its compressions for it."""
    width = DEFAULT_WIDTH
    with suppress(OSError, ValueError, AttributeError):
        width = int(os.environ.get("COLUMNS") or os.get_terminal_size(sys.stdout.fileno()).columns)
    return max(MIN_WIDTH, min(width, MAX_WIDTH))
