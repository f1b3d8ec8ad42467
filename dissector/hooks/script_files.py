"""Scripts with hooks: files of Python that the user names, each run once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import walk_tb
from types import FunctionType, ModuleType
from typing import Any

from dissector.errors import UsageError

KINDS: Mapping[str, str] = {
    "value": "kafkashark.values",
    "key": "kafkashark.keys",
    "rule": "kafkashark.rules",
    "advice": "kafkashark.advice",
    "rewrite": "kafkashark.rewrites",
    "column": "kafkashark.columns",
}
"""
The kinds of hooks, and the groups of their entry points.

In a script the name of a hook's function is the kind, or begins with it: `rule`, `rule_names`.
"""


def load_script(name: str) -> ModuleType:
    """
    Return the module of a script.

    Raises:
        UsageError: It can't be read or run, or has no hook.
    """
    return _loaded(str(Path(name).absolute()), name)


def functions_of(module: ModuleType, kind: str) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """Yield names and functions of a kind that a module defines, in the order of their lines."""
    for name, each in vars(module).items():
        is_own = isinstance(each, FunctionType) and each.__module__ == module.__name__
        if is_own and (name == kind or name.startswith(f"{kind}_")):
            yield name, each


def written_columns(name: str) -> list[str]:
    """Return the labels of the columns in the text of a script, which is not run."""
    import ast  # only shells that complete need it

    try:
        body = ast.parse(Path(name).expanduser().read_bytes()).body
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    names = [each.name for each in body if isinstance(each, ast.FunctionDef)]
    return [
        each.removeprefix("column").strip("_") or Path(name).stem
        for each in names
        if each == "column" or each.startswith("column_")
    ]


@cache
def _loaded(path: str, shown: str) -> ModuleType:
    # A prefix, so that a script named json.py hides no module.
    name = f"kafkashark_scripts.{Path(path).stem}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not Path(path).is_file():
        raise UsageError(f"--script {shown}: no such file, or its name does not end with .py")
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look there for the types of their fields
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise UsageError(f"--script {shown}: {_reason(error, path)}") from None
    if not any(True for kind in KINDS for _ in functions_of(module, kind)):
        raise UsageError(f"--script {shown}: no function in it is named {', '.join(KINDS)}")
    return module


def _reason(error: BaseException, path: str) -> str:
    """Return the line of a script that failed, and why."""
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {error.msg}"
    frames = walk_tb(error.__traceback__)
    lines = [line for frame, line in frames if frame.f_code.co_filename == path]
    where = f"line {lines[-1]}: " if lines else ""
    return f"{where}{type(error).__name__}: {' '.join(str(error).split())}"
