"""Hooks by kind: functions in scripts, and entry points of installed packages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from traceback import walk_tb
from typing import Any, NamedTuple, TypeVar

from dissector.hooks.script_files import KINDS, functions_of, load_script

Result = TypeVar("Result", bound=tuple[Any, ...])


class Hook(NamedTuple):
    """
    A function of a user.

    Attributes:
        name: The name of its script, without the suffix, or of its entry point.
        place: The file of its code, as failures name it.
        file: The file of its code, as Python names it.
        function: The function.
        label: What distinguishes it from others of its kind: in a script the rest of the name,
            `large_fetches` of `advice_large_fetches`; else as `name`.
    """

    name: str
    place: str
    file: str
    function: Callable[[Any], Any]
    label: str

    def results(self, argument: object, kind: type[Result], most: int) -> list[Result]:
        """
        Return what the function yields; one that returns a single result has yielded it.

        Args:
            argument: The argument of the function.
            kind: The type of results; a text in place of one is its first attribute.
            most: The most results that are taken.

        Raises:
            Exception: Of the function, or TypeError if it yields something else.
        """
        found = self.function(argument)
        if found is None:
            return []
        if isinstance(found, str | kind):
            return [_texts_as(kind, found)]
        if not isinstance(found, Iterable):
            raise TypeError(f"a hook yields texts or {kind.__name__}")
        return [_texts_as(kind, each) for each in islice(found, most)]

    def failure(self, error: BaseException) -> str:
        """
        Return the script, the line and the class of an exception.

        Its text is left out: it may hold what outputs hide.
        """
        lines = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
        own = [line for file, line in lines if file == self.file]
        where = f"{self.place}, line {own[-1]}" if own else self.place
        return f"{where}: {type(error).__name__}"


def _texts_as(kind: type[Result], found: object) -> Result:
    made = kind(found) if isinstance(found, str) else found
    if not isinstance(made, kind):
        raise TypeError(f"a hook yields texts or {kind.__name__}")
    return made


def find_hooks(kind: str, scripts: Iterable[str], warn: Callable[[str], None]) -> list[Hook]:
    """
    Return the hooks of a kind: those of scripts in the given order, then the installed ones.

    Args:
        kind: One of `KINDS`.
        scripts: Names of scripts.
        warn: Gets a line for each installed hook that can't be loaded.

    Raises:
        UsageError: A script can't be run, or has no hook of any kind.
    """
    found = []
    for script in scripts:
        module = load_script(script)
        name = module.__name__.rpartition(".")[2]
        for called, function in functions_of(module, kind):
            file = function.__code__.co_filename
            label = called.removeprefix(kind).strip("_") or name
            found.append(Hook(name, script, file, function, label))
    return [*found, *_installed(kind, warn)]


def _installed(kind: str, warn: Callable[[str], None]) -> Iterator[Hook]:
    from importlib.metadata import entry_points

    for each in sorted(entry_points(group=KINDS[kind])):
        try:
            function = each.load()
        except (Exception, SystemExit) as error:  # a foreign module may do anything
            warn(f"the hook {each.name} ({each.value}) can't be loaded: {type(error).__name__}")
            continue
        code = getattr(function, "__code__", None)
        file = code.co_filename if code else ""
        yield Hook(each.name, each.value, file, function, each.name)
