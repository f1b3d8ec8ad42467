"""Hooks by kind: functions in scripts, and entry points of installed packages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from traceback import walk_tb
from typing import Any, NamedTuple

from dissector.hooks.script_files import KINDS, functions_of, load_script


class Hook(NamedTuple):
    """
    A function of a user.

    Attributes:
        name: The name of its script, without the suffix, or of its entry point.
        place: The file of its code, as failures name it.
        file: The file of its code, as Python names it.
        function: The function.
    """

    name: str
    place: str
    file: str
    function: Callable[[Any], Any]

    def failure(self, error: BaseException) -> str:
        """
        Return the script, the line and the class of an exception.

        Its text is left out: it may hold what outputs hide.
        """
        lines = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
        own = [line for file, line in lines if file == self.file]
        where = f"{self.place}, line {own[-1]}" if own else self.place
        return f"{where}: {type(error).__name__}"


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
        for function in functions_of(module, kind):
            file = function.__code__.co_filename
            found.append(Hook(module.__name__.rpartition(".")[2], script, file, function))
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
        yield Hook(each.name, each.value, code.co_filename if code else "", function)
