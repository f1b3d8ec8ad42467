"""A page for each command: what it does, its options, its examples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dissector.cli.app import COMMANDS
from dissector.cli.parsing.command_table import CommandTable
from dissector.cli.parsing.declarations import Command, Option
from dissector.cli.parsing.help_text import meaning_of, option_sections, paragraphs, title_of
from dissector.cli.presentation.examples import EXAMPLES
from tools.site.markup import escaped, table


def command_pages() -> dict[str, str]:
    """Return the Markdown of each command's page by its name."""
    commands = CommandTable(COMMANDS).all()
    return {each.name: "\n".join(_lines(each)) for each in sorted(commands)}


def _lines(command: Command) -> Iterator[str]:
    yield f"# kafkashark {command.name}"
    for paragraph in paragraphs(command.help):
        yield from ("", escaped(paragraph))
    if examples := EXAMPLES.get(command.name):
        yield from ("", "```console", *(f"$ kafkashark {each}" for each in examples), "```")
    arguments = [each for each in command.options.declared().values() if not each.names]
    for heading, options in {"Arguments": arguments, **option_sections(command)}.items():
        if options:
            yield from ("", f"## {heading}", "", *_options(options))


def _options(options: Iterable[Option]) -> Iterator[str]:
    rows = ((f"`{title_of(each)}`", escaped(meaning_of(each))) for each in options)
    yield from table(("option", "meaning"), rows)
