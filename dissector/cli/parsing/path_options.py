"""The paths in the options of a command, checked before it starts."""

from __future__ import annotations

import os
from collections.abc import Iterator

from dissector.cli.parsing.declarations import Option, Options
from dissector.file_roles import NamedPath, Reads


def named_paths(given: Options) -> Iterator[NamedPath]:
    """Yield the paths in the options of a command."""
    for name, each in given.declared().items():
        if each.role is None:
            continue
        value = getattr(given, name)
        if not value and isinstance(each.role, Reads) and each.role.variable:
            value = list(filter(None, os.environ.get(each.role.variable, "").split(os.pathsep)))
        for path in value if isinstance(value, list | tuple) else [value]:
            if path is not None and isinstance(each.role, Reads) and each.role.path_in is not None:
                path = each.role.path_in(str(path)) or None
            if path is not None:
                yield NamedPath(str(path), name_of(each), each.role)


def name_of(declared: Option) -> str:
    """Return the name of an option as typed, or the word for an argument."""
    return declared.names[0] if declared.names else declared.metavar.removesuffix("...")
