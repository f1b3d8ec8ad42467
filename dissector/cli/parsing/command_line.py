"""The parser of command lines, on argparse: words to the options of a command."""

from __future__ import annotations

from argparse import SUPPRESS, Action, ArgumentParser, BooleanOptionalAction, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, NoReturn, TypeAlias

from dissector.cli.parsing.declarations import (
    REQUIRED,
    Command,
    Option,
    Options,
    ValueType,
    value_types,
)
from dissector.cli.parsing.path_options import named_paths
from dissector.errors import UsageError, suggestion
from dissector.file_roles import NamedPath, check_outputs

SHORT, LONG = "-", "--"

READ_FILE = "-r"
"""tshark's option before a capture; here a capture needs none, and may have it."""


Settings: TypeAlias = Callable[[Command], Mapping[str, Any]]
"""Returns the values of options that a command takes from settings, by attribute."""


class CalledInsteadError(Exception):
    """An option like --version was given: what it does takes the place of the command."""

    def __init__(self, action: Callable[[Command], object]) -> None:
        self.action = action


def prepared(
    command: Command,
    words: Sequence[str],
    settings: Settings | None = None,
    also_read: Callable[[], Sequence[NamedPath]] = tuple,
) -> Callable[[], Any]:
    """
    Return a command with the options in the words after its name, to be run.

    Args:
        command: The command.
        words: The words after its name.
        settings: The source of options that are not among the words.
        also_read: Returns the files that the command reads, besides those in its options.

    Raises:
        UsageError: The words are not a command line of these options, or an output of the command
            would overwrite an input.
    """
    try:
        given = parse(command, words, settings)
    except CalledInsteadError as error:
        return partial(error.action, command)
    check_outputs([*named_paths(given), *also_read()])
    return partial(command.run, given)


def parse(command: Command, words: Sequence[str], settings: Settings | None = None) -> Options:
    """
    Return the options in the words after a command's name, and in settings; calls their callbacks.

    Raises:
        UsageError: The words are not a command line of these options.
        CalledInsteadError: An option takes the place of the command.
    """
    declared, types = command.options.declared(), value_types(command.options)
    program = command.program
    parser = _Parser(prog=program, add_help=False, allow_abbrev=False)
    for name, each in declared.items():
        _add(parser, name, each, types[name])
    given, surplus = parser.parse_known_args(_in_order(words, declared, types, program))
    if surplus := [word for word in surplus if word != LONG]:
        raise UsageError(f"unexpected argument {surplus[0]!r} ({program} --help)")
    values = {
        name: tuple(map(_fixed, value)) if isinstance(value, list) else value
        for name, value in vars(given).items()
    }
    if settings is not None:
        values = {**settings(command), **values}
    found = command.options(**values)
    for name, each in declared.items():
        if each.callback is not None:
            each.callback(getattr(found, name))
    return found


def _fixed(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


class _Parser(ArgumentParser):
    """Raises its errors, in the words of the other errors."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message.removeprefix('argument ')} ({self.prog} --help)")


class _CallInstead(Action):
    """Ends the parsing, whatever else is missing or wrong."""

    def __call__(
        self, parser: ArgumentParser, namespace: Namespace, values: Any, option: str | None = None
    ) -> None:
        raise CalledInsteadError(self.const)


def _show_help(command: Command) -> None:
    from dissector.cli.parsing.help_text import help_lines

    print(*help_lines(command), sep="\n")


def _add(parser: ArgumentParser, name: str, declared: Option, of: ValueType) -> None:
    """Add an option or argument; the class, not the parser, knows its default."""
    if not declared.names:
        _add_argument(parser, name, declared, of)
        return
    settings: dict[str, Any] = {"default": SUPPRESS, "dest": name}
    instead = declared.instead or (_show_help if name == "help" else None)
    if instead is not None:
        settings |= {"action": _CallInstead, "nargs": 0, "const": instead}
    elif of.each is bool:
        settings["action"] = BooleanOptionalAction if declared.default else "store_true"
    else:
        settings |= {"type": partial(converted, declared, of)}
        settings["action"] = "append" if of.is_list else "store"
        settings["required"] = declared.default is REQUIRED
        if of.each is tuple:
            settings["nargs"] = _word_count(declared, of)
    parser.add_argument(*declared.names, **settings)


def _add_argument(parser: ArgumentParser, name: str, declared: Option, of: ValueType) -> None:
    is_required = declared.default is REQUIRED
    few, many = (None, "+") if is_required else ("?", "*")
    parser.add_argument(
        name,
        nargs=many if of.is_list else few,
        # argparse would convert the text of SUPPRESS.
        default=declared.default if not (is_required or of.is_list) else SUPPRESS,
        type=partial(converted, declared, of),
        metavar=declared.metavar,
    )


def converted(declared: Option, of: ValueType, text: str) -> Any:
    """
    Return the value of a text.

    Raises:
        UsageError: It is none for this option.
    """
    title = declared.names[0] if declared.names else declared.metavar.strip("[].")
    if declared.choices and text not in declared.choices:
        words = ", ".join(declared.choices)
        raise UsageError(f"{title} takes {words}, not {text!r}{suggestion(text, declared.choices)}")
    if of.each is tuple:
        return text
    try:
        value = of.each(text)
        if of.each in (int, float) and not _is_between(value, declared):
            raise ValueError
    except ValueError:
        raise UsageError(f"{title} takes {_numbers(declared, of)}, not {text!r}") from None
    return value if declared.convert is None else declared.convert(value)


def _is_between(value: float, declared: Option) -> bool:
    least, most = declared.least, declared.most
    # Not the other way round: a number that is none is between no others.
    return (least is None or value >= least) and (most is None or value <= most)


def _numbers(declared: Option, of: ValueType) -> str:
    kind = "a whole number" if of.each is int else "a number"
    return f"{kind} {declared.limits}" if declared.limits else kind


def takes_words(declared: Option, of: ValueType) -> int:
    """Return the number of words that follow the name of an option."""
    return 0 if of.each is bool else _word_count(declared, of)


def _word_count(declared: Option, of: ValueType) -> int:
    return len(declared.metavar.split()) if of.each is tuple else 1


def named_options(
    declared: Mapping[str, Option], types: Mapping[str, ValueType]
) -> dict[str, tuple[Option, int]]:
    """Return declarations by each of their names, with the number of words that follow it."""
    found = {
        name: (each, takes_words(each, types[field]))
        for field, each in declared.items()
        for name in each.names
    }
    negated = {
        f"--no-{name.removeprefix(LONG)}": (each, count)
        for name, (each, count) in found.items()
        if each.default is True and name.startswith(LONG)
    }
    return found | negated


def _in_order(
    words: Sequence[str],
    declared: Mapping[str, Option],
    types: Mapping[str, ValueType],
    program: str,
) -> list[str]:
    """
    Return the options, each joined with its value, then the arguments.

    argparse takes a word that begins with a minus sign for an option even where a value must
    follow, as in `--sort -latency_ms`, and arguments only if no option is among them.
    """
    named = named_options(declared, types)
    options, arguments = list[str](), list[str]()
    reads_captures = READ_FILE not in named and takes_captures(declared)
    left = iter(words)
    for word in left:
        if word == LONG:
            arguments += left
        elif reads_captures and word.startswith(READ_FILE):
            arguments += filter(None, [word.removeprefix(READ_FILE)])
        elif word == SHORT or not word.startswith(SHORT):
            arguments.append(word)
        else:
            options += _joined(word, left, named, program)
    return [*options, LONG, *arguments] if arguments else options


def takes_captures(declared: Mapping[str, Option]) -> bool:
    """Return whether captures are arguments of a command."""
    return any(not each.names and each.metavar.startswith("CAPTURE") for each in declared.values())


def _similar(name: str, known: Iterable[str]) -> str:
    """Suggest an option; the minus signs, which all have, would make all similar."""
    long = [each.removeprefix(LONG) for each in known if each.startswith(LONG)]
    found = suggestion(name.removeprefix(LONG), long) if name.startswith(LONG) else ""
    return found.replace("mean ", f"mean {LONG}")


def _joined(
    word: str, left: Iterator[str], named: Mapping[str, tuple[Option, int]], program: str
) -> Iterator[str]:
    """Yield the options in a word, as `-xVc5` has three, with the words that are their values."""
    is_long = word.startswith(LONG)
    name, equals, value = word.partition("=") if is_long else (word[:2], word[2:], word[2:])
    if name not in named:
        raise UsageError(f"no option {name}{_similar(name, named)} ({program} --help)")
    declared, count = named[name]
    if not count:
        yield word if is_long else name
        if value and not is_long:
            yield from _joined(f"-{value}", left, named, program)
        return
    values = [value] if equals else list(islice(left, count))
    if len(values) < count or LONG in values:
        raise UsageError(f"{name} takes {declared.metavar} ({program} --help)")
    yield from (name, *values) if count > 1 else (f"{name}={values[0]}",)
