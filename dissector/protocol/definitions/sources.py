"""The message definitions that a command is given: by its options, else by a variable."""

from __future__ import annotations

import os
from collections.abc import Sequence

from dissector.protocol.context import use

SCHEMAS_VARIABLE = "KAFKASHARK_SCHEMAS"
"""Holds JARs and folders of definitions, separated as in PATH."""


def use_sources(sources: Sequence[str] | None) -> list[str]:
    """
    Read by the definitions in JARs and folders from here on; by default those of the variable.

    Returns:
        What can't be used of them, a line each.

    Raises:
        UsageError: A source can't be read, or has no definitions.
    """
    given = sources or os.environ.get(SCHEMAS_VARIABLE, "").split(os.pathsep)
    names = [name for name in given if name]
    if not names:
        return []
    from dissector.protocol.definitions.schemas import Schemas

    schemas = Schemas.of(*names)
    use(schemas)
    return schemas.problems
