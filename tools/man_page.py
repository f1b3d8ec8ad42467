"""
Generates the manual page man/kafkashark.1 from commands and options.

python -m tools.man_page [--write]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from dissector.cli.app import COMMANDS, DESCRIPTION
from dissector.cli.parsing.command_table import CommandTable
from dissector.cli.parsing.declarations import Command, Option
from dissector.cli.parsing.help_text import meaning_of, option_sections, paragraphs, title_of
from dissector.cli.presentation.examples import EXAMPLES

PAGE = Path(__file__).parents[1] / "man" / "kafkashark.1"

_INTRODUCTION = r"""\fBkafkashark\fP \fICOMMAND\fP \fICAPTURE\fP... [\fIoptions\fP]
.br
\fBkafkashark\fP \fICAPTURE\fP... [\fIoptions\fP]"""
_STATUS = (
    ("0", "success"),
    ("1", "differences or violations were found"),
    ("2", "wrong usage, or unreadable input"),
    ("130", "interrupted by Ctrl-C; what was read is printed"),
    ("143", "ended by SIGTERM; what was read is printed"),
)


def page() -> str:
    """Return the page in the macros of man(7)."""
    return "".join(f"{line}\n" for line in _lines())


def _lines() -> Iterator[str]:
    table = CommandTable(COMMANDS)
    yield '.TH KAFKASHARK 1 "" kafkashark "User Commands"'
    yield from (".SH NAME", r"kafkashark \- Wireshark for Apache Kafka")
    yield from (".SH SYNOPSIS", _INTRODUCTION, ".SH DESCRIPTION", _text(DESCRIPTION))
    yield _text("A CAPTURE is a pcap or pcapng file, also compressed, or - for standard input.")
    yield ".SH COMMANDS"
    for command in sorted(table.all(), key=lambda each: each.name):
        yield f".SS {command.name}"
        for paragraph in paragraphs(command.help):
            yield from (".PP", _text(paragraph))
        options = command.options.declared().values()
        for option in (*(each for each in options if not each.names), *_named(command)):
            yield from (
                ".TP",
                f".B {_text(title_of(option))}",
                _text(meaning_of(option).replace("\xa0", " ")),
            )
        if command.name in EXAMPLES:
            yield from (".PP", "Examples:", ".PP", ".nf")
            yield from (f"kafkashark {_text(each)}" for each in EXAMPLES[command.name])
            yield ".fi"
    yield ".SH EXIT STATUS"
    for status, meaning in _STATUS:
        yield from (".TP", f".B {status}", meaning)
    yield from (".SH ENVIRONMENT", ".TP", ".B NO_COLOR", "No colour on terminals.")
    yield from (".SH SEE ALSO", ".BR tshark (1),", ".BR tcpdump (1)")


def _named(command: Command) -> Iterator[Option]:
    """Yield the options of a command in the order of its help."""
    return chain.from_iterable(option_sections(command).values())


def _text(text: str) -> str:
    r"""Escape characters with a meaning in troff: backslashes, minus, leading dots and quotes."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{escaped}" if escaped.startswith((".", "'")) else escaped


def main(arguments: list[str]) -> None:
    if arguments == ["--write"]:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(page())
    elif arguments:
        raise SystemExit("python -m tools.man_page [--write]")
    else:
        print(page(), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
