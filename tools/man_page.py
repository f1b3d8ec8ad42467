"""
Generates the manual page man/kafkashark.1 from commands and options.

python -m tools.man_page [--write]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from dissector.cli.parsing.typer_commands import application
from dissector.cli.presentation.examples import EXAMPLES

PAGE = Path(__file__).parents[1] / "man" / "kafkashark.1"

_INTRODUCTION = r"""\fBkafkashark\fP \fICOMMAND\fP \fICAPTURE\fP... [\fIoptions\fP]"""
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
    group: Any = typer.main.get_command(application())
    yield '.TH KAFKASHARK 1 "" kafkashark "User Commands"'
    yield from (".SH NAME", r"kafkashark \- Wireshark for Apache Kafka")
    yield from (".SH SYNOPSIS", _INTRODUCTION, ".SH DESCRIPTION", _text(group.help))
    yield _text("A CAPTURE is a pcap or pcapng file, also compressed, or - for standard input.")
    yield ".SH COMMANDS"
    for name, command in sorted(group.commands.items()):
        yield from (f".SS {name}", *_paragraphs(command.help))
        for option in command.params:
            if not getattr(option, "hidden", False):
                yield from _option(option)
        if name in EXAMPLES:
            yield from (".PP", "Examples:", ".PP", ".nf")
            yield from (f"kafkashark {_text(each)}" for each in EXAMPLES[name])
            yield ".fi"
    yield ".SH EXIT STATUS"
    for status, meaning in _STATUS:
        yield from (".TP", f".B {status}", meaning)
    yield from (".SH ENVIRONMENT", ".TP", ".B NO_COLOR", "No colour on terminals.")
    yield from (".SH SEE ALSO", ".BR tshark (1),", ".BR tcpdump (1)")


def _paragraphs(text: str | None) -> Iterator[str]:
    for paragraph in (text or "").split("\n\n"):
        yield from (".PP", _text(" ".join(paragraph.split())))


def _option(option: Any) -> Iterator[str]:
    """Yield an option, or an argument, with its help."""
    names = ", ".join(option.opts) if option.param_type_name == "option" else ""
    metavar = "" if getattr(option, "is_flag", False) else option.metavar or ""
    title = " ".join(filter(None, (names, metavar))) or option.name.upper()
    yield from (".TP", f".B {_text(title)}", _text(" ".join((option.help or "").split())))


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
