"""How a user names sources of schemas; of these, commands load nothing else."""

from __future__ import annotations

from dissector.file_roles import Reads

VALUES_VARIABLE = "KAFKASHARK_VALUES"
"""Environment variable with sources, separated as in PATH."""

SOURCE_FILES = ("*.avsc", "*.json")
"""The files of a folder that are read."""

READS_VALUES = Reads(folder_files=SOURCE_FILES, variable=VALUES_VARIABLE)
"""The role of an option with such sources."""
