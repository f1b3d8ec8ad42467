"""How a user names sources of schemas; of these, commands load nothing else."""

from __future__ import annotations

from dissector.file_roles import Reads

VALUES_VARIABLE = "KAFKASHARK_VALUES"
"""Environment variable with sources, separated as in PATH."""

SOURCE_FILES = ("*.avsc", "*.json")
"""The files of a folder that are read."""


def format_file(text: str) -> str:
    """Return the file in the format of a topic, `orders=avro:order.avsc`; empty without one."""
    return text.partition("=")[2].partition(":")[2].partition("#")[0]


READS_FORMAT = Reads(path_in=format_file)
"""The role of an option with a format, which may name a file."""

READS_VALUES = Reads(folder_files=SOURCE_FILES, variable=VALUES_VARIABLE)
"""The role of an option with such sources."""
