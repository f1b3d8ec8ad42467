"""
Declarations of options: classes whose attributes are the options of a command.

A class may have others as bases, so that options that commands share are declared once:

    class Pairs(RowOptions, ReadingOptions):
        bodies: bool = option("--bodies", default=False, help="Add the decoded bodies.")

Its instances hold the values, typed for the command's function. Nothing else is imported by a
declaration: completions and callbacks import what they need when they are called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import (
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Self,
    TypeAlias,
    TypeVar,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from dissector.file_roles import Reads, Writes

PROGRAM = "kafkashark"

T = TypeVar("T")

Complete: TypeAlias = Callable[[str, str, Sequence[str]], Iterable[str]]
"""Completes a value: the command's name, the text so far, and the words before to whole values."""

REQUIRED: Any = object()
"""The default of what must be given."""


class Option(NamedTuple):
    """
    The declaration of an option or an argument.

    Attributes:
        names: Its names, which begin with a minus sign; none of an argument.
        default: The value without it.
        help: What it does, in a sentence or two.
        metavar: The word for its value; several for an option of as many words.
        choices: Its only values.
        complete: Completes its value in a shell.
        least: The lowest number.
        most: The highest number.
        role: Of a path: what is done with it.
        callback: Called with the value before the command.
        instead: Called with the command in place of its function, whatever else is given.
        convert: Makes the value of a text.
        setting: `shared` if the settings file may give it for all commands, `own` if only in the
            table of the command, empty if it may not.
    """

    names: tuple[str, ...]
    default: Any
    help: str
    metavar: str = ""
    choices: tuple[str, ...] = ()
    complete: Complete | None = None
    least: float | None = None
    most: float | None = None
    role: Reads | Writes | None = None
    callback: Callable[[Any], object] | None = None
    instead: Callable[[Command], object] | None = None
    convert: Callable[[str], str] | None = None
    setting: Literal["", "own", "shared"] = ""

    @property
    def key(self) -> str:
        """Its name in the settings file: the first long one, without minus signs."""
        return next((each[2:] for each in self.names if each.startswith("--")), "")

    @property
    def limits(self) -> str:
        """The limits of a number in words; empty without any."""
        if self.least is None:
            return ""
        least = f"{self.least:g}"
        return f"{least} or more" if self.most is None else f"{least} to {self.most:g}"


def option(
    *names: str,
    default: T = REQUIRED,
    help: str,
    metavar: str = "",
    choices: Sequence[str] = (),
    complete: Complete | None = None,
    least: float | None = None,
    most: float | None = None,
    role: Reads | Writes | None = None,
    callback: Callable[[T], object] | None = None,
    instead: Callable[[Command], object] | None = None,
    convert: Callable[[str], str] | None = None,
    setting: Literal["", "own", "shared"] = "",
) -> T:
    """Declare an option, or without names an argument; see `Option`."""
    declared = Option(
        names,
        default,
        help,
        metavar,
        tuple(choices),
        complete,
        least,
        most,
        role,
        callback,
        instead,
        convert,
        setting,
    )
    return cast(T, declared)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(option,))
class Options:
    """
    The values of a command's options.

    Attributes:
        heading: Above the options of the class in help.
    """

    heading: ClassVar[str] = "Options"

    # The parser shows the help of the command, unless a class declares something else.
    help: bool = option("-h", "--help", default=False, help="Show this message and exit.")

    def __init__(self, **values: Any) -> None:
        for name, each in self.declared().items():
            value = values.pop(name, each.default)
            if value is REQUIRED:
                raise TypeError(f"{name} is required")
            object.__setattr__(self, name, value)
        if values:
            raise TypeError(f"no option is {' or '.join(values)}")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name} is read-only")

    def replace(self, **values: Any) -> Self:
        """Return options with other values."""
        return type(self)(**{**vars(self), **values})

    @classmethod
    def declared(cls) -> dict[str, Option]:
        """Return the declarations by attribute: own ones, then those of the bases in order."""
        return {name: each for _, found in cls.sections() for name, each in found.items()}

    @classmethod
    def number_tables(cls) -> Mapping[str, Mapping[str, float]]:
        """Return the tables of numbers in the command's settings, with their defaults."""
        return {}

    @classmethod
    def sections(cls) -> Iterator[tuple[str, Mapping[str, Option]]]:
        """Yield the headings of the class and its bases, with their declarations."""
        seen = set[str]()
        for base in cls.__mro__:
            found = {name: each for name, each in vars(base).items() if isinstance(each, Option)}
            if new := {name: each for name, each in found.items() if name not in seen}:
                seen |= new.keys()
                yield vars(base).get("heading", "Options"), new


class Command(NamedTuple):
    """
    A command.

    Attributes:
        name: Its name; empty of the program itself.
        help: Its description: a sentence, perhaps more paragraphs.
        options: The class of its options.
        run: Its function; it returns the exit status, or None for 0.
    """

    name: str
    help: str
    options: type[Options]
    run: Callable[[Any], Any]

    @classmethod
    def of(cls, name: str, function: Callable[..., Any]) -> Self:
        """
        Return the command of a function with one parameter: its options.

        Raises:
            TypeError: It is no such function.
        """
        hints = [each for each in get_type_hints(function).items() if each[0] != "return"]
        options = hints[0][1] if len(hints) == 1 else None
        if not (isinstance(options, type) and issubclass(options, Options)):
            raise TypeError("the function of a command takes one parameter, a subclass of Options")
        return cls(name, function.__doc__ or "", options, function)

    @property
    def program(self) -> str:
        """The words before those of the command: `kafkashark pairs`."""
        return f"{PROGRAM} {self.name}".strip()


def with_prefix(options: type[Options], prefix: str) -> None:
    """Give the options of a class other names: `--upstream-tls` for `--tls`."""
    for name, each in options.declared().items():
        if each.instead is None and name != "help":
            long = [name for name in each.names if name.startswith("--")]
            changed = [f"--{prefix}{name.removeprefix('--')}" for name in long]
            help = each.help.replace(" --", f" --{prefix}")
            setattr(options, name, each._replace(names=tuple(changed), help=help))


class ValueType(NamedTuple):
    """
    The type of an option's values.

    Attributes:
        each: The type of one value: bool, int, float, str, Path, or tuple for several words.
        is_list: Whether the option may be given more than once.
    """

    each: type
    is_list: bool


def value_types(options: type[Options]) -> dict[str, ValueType]:
    """Return the types of a command's options by attribute, from their annotations."""
    hints = get_type_hints(options)
    return {name: _value_type(hints[name]) for name in options.declared()}


_TYPES = (bool, int, float, str, Path)


def _value_type(annotation: Any) -> ValueType:
    plain = next((each for each in get_args(annotation) if each is not type(None)), annotation)
    if get_origin(annotation) in (tuple, Sequence):
        item = get_args(annotation)[0]
        return ValueType(get_origin(item) or item, is_list=True)
    if plain not in _TYPES:
        raise TypeError(f"an option can't be of type {annotation}")
    return ValueType(plain, is_list=False)
