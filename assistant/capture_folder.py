"""The files that an assistant may read: those below one folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dissector.errors import UsageError
from dissector.view.text.escape import quoted

MAX_CAPTURES = 100
"""Maximum number of files of one capture."""

_MAX_VISITED = 100_000


class CaptureFolder:
    """
    A folder, and all below it; links out of it lead nowhere.

    Args:
        name: The folder.

    Attributes:
        root: The folder, without links in its path.

    Raises:
        UsageError: It is no folder.
    """

    def __init__(self, name: str) -> None:
        self.root = Path(name).resolve()
        if not self.root.is_dir():
            raise UsageError(f"{name}: no such folder")

    def files(self) -> Iterator[dict[str, Any]]:
        """Yield the files, without hidden ones: path in the folder, size, time of change."""
        visited = 0
        for folder, folders, names in os.walk(self.root):
            folders[:] = sorted(each for each in folders if not each.startswith("."))
            for name in sorted(names):
                visited += 1
                if visited > _MAX_VISITED:
                    return
                path = Path(folder, name)
                if name.startswith(".") or not self._is_inside(path):
                    continue
                try:
                    state = path.stat()
                except OSError:  # deleted since
                    continue
                shown = path.relative_to(self.root).as_posix()
                yield {"path": shown, "bytes": state.st_size, "modified_s": int(state.st_mtime)}

    def paths(self, names: Sequence[str]) -> list[str]:
        """
        Return the paths of files from the folder on, as words of a command.

        Raises:
            UsageError: One is no file below the folder, or there are none or too many.
        """
        if not 0 < len(names) <= MAX_CAPTURES:
            raise UsageError(f"1 to {MAX_CAPTURES} captures are read at once, not {len(names)}")
        return [self._path(name) for name in names]

    def _path(self, name: str) -> str:
        path = self.root / name
        if self._is_inside(path):
            return f"./{path.resolve().relative_to(self.root)}"
        raise UsageError(f"{quoted(name)} is no file of the folder; captures lists them")

    def _is_inside(self, path: Path) -> bool:
        try:
            found = path.resolve()
            return found.is_relative_to(self.root) and found.is_file()
        except (OSError, ValueError, RuntimeError):  # too long, a null byte, a loop of links
            return False
