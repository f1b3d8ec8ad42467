"""The message definitions of a command, from its options or from the environment variable."""

from __future__ import annotations

import os
from collections.abc import Sequence

from dissector.file_roles import Reads
from dissector.protocol.context import use

SCHEMAS_VARIABLE = "KAFKASHARK_SCHEMAS"
"""Environment variable with JARs and folders of definitions, separated as in PATH."""

READS_SCHEMAS = Reads(folder_files=("*.json", "*.jar"), variable=SCHEMAS_VARIABLE)
"""The role of an option with such JARs and folders."""


def use_sources(sources: Sequence[str] | None) -> list[str]:
    """
    Decode by the definitions in JARs and folders from here on; by default the variable's.

    Returns:
        The problems of definitions that can't be used, a line each.

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
