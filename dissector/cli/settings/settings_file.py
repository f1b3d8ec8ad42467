"""
The settings file of a project: found from the current folder upwards.

`kafkashark.toml` holds the settings; `pyproject.toml` holds them in its table `tool.kafkashark`.
The first folder with one of them counts, whatever is above it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dissector.errors import UsageError
from dissector.small_files import read_small_text
from dissector.view.text.escape import escaped

OWN_FILE, SHARED_FILE = "kafkashark.toml", "pyproject.toml"

TABLE = "tool.kafkashark"
"""The table of the settings in `pyproject.toml`."""

CONFIG_VARIABLE = "KAFKASHARK_CONFIG"
"""Environment variable with the name of a settings file; empty: there are no settings."""

TRUSTED_OWNERS = (0,)
"""Users whose files count, besides the user's own: root's."""


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """
    The settings that hold.

    Attributes:
        path: Their file; None without settings.
        table: What it holds, unchecked.
    """

    path: Path | None = None
    table: Mapping[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """The folder that relative paths in the settings begin at."""
        return Path() if self.path is None else self.path.parent

    def error(self, key: str, what: str) -> UsageError:
        """Return the error of a setting."""
        return UsageError(f"{self.path}: {key}: {what}")

    def table_of(self, name: str) -> Mapping[str, Any]:
        """
        Return a table of the settings; empty without it.

        Raises:
            UsageError: It is something else.
        """
        found = self.table.get(name, {})
        if not isinstance(found, dict):
            raise self.error(name, "must be a table")
        return found

    def numbers_of(self, command: str) -> dict[str, dict[str, float]]:
        """Return the tables of numbers in the table of a command, such as thresholds."""
        found = self.table_of(command).items()
        return {name: each for name, each in found if isinstance(each, dict)}


def settings_file() -> SettingsFile:
    """
    Return the settings of the current folder.

    Raises:
        UsageError: The file can't be read, or is no TOML.
    """
    named = os.environ.get(CONFIG_VARIABLE)
    if named is not None:
        return SettingsFile(Path(named), _settings_in(Path(named)) or {}) if named else NO_SETTINGS
    for path in _candidates():
        table = _settings_in(path)
        if table is not None and _is_trusted(path):
            return SettingsFile(path, table)
    return NO_SETTINGS


NO_SETTINGS = SettingsFile()


def _candidates() -> Iterator[Path]:
    """Yield the files that may hold settings, nearest first."""
    try:
        folder = Path.cwd()
    except OSError:  # it was removed
        return
    for each in (folder, *folder.parents):
        yield from filter(Path.is_file, (each / OWN_FILE, each / SHARED_FILE))


def _settings_in(path: Path) -> dict[str, Any] | None:
    """Return the settings in a file; None if it holds those of other programs only."""
    is_own = path.name != SHARED_FILE
    text = read_small_text(path)
    if not is_own and "kafkashark" not in text:
        return None
    import tomllib  # loaded for a file only

    try:
        found: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: no TOML: {error}") from None
    except RecursionError:
        raise UsageError(f"{path}: no TOML: nested too deeply") from None
    for key in () if is_own else TABLE.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else None


def _is_trusted(path: Path) -> bool:
    """
    Return whether a file that was found is of the user, or of root; say so if it is not.

    A file in a shared folder above, such as `/tmp`, must not choose what a user's commands read.
    """
    if not hasattr(os, "geteuid") or path.stat().st_uid in (*TRUSTED_OWNERS, os.geteuid()):
        return True
    hint = f"${CONFIG_VARIABLE} names the file of settings to use"
    print(
        f"kafkashark: {escaped(str(path))} is of another user and not used ({hint})",
        file=sys.stderr,
    )
    return False
