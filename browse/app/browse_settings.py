"""Settings that the screen keeps between runs, in the user's configuration folder."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

MAX_FILTERS = 100


@dataclass
class BrowseSettings:
    """
    Remembered choices.

    Attributes:
        theme: Name of the colours.
        times: Form of times, a key of `STYLES`.
        layout: Name of the arrangement of the panes; empty: by the width of the screen.
        list_share: Height of the list in percent.
        columns: Chosen columns by mode.
        filters: Used filters, the newest last.
    """

    theme: str = "textual-dark"
    times: str = "r"
    layout: str = ""
    list_share: int = 50
    columns: dict[str, list[str]] = field(default_factory=dict)
    filters: list[str] = field(default_factory=list)

    @classmethod
    def load(cls, path: Path) -> BrowseSettings:
        """Read the settings of a file; the defaults if the file is missing or invalid."""
        settings = cls()
        found: Any = None
        with suppress(OSError, ValueError, RecursionError):
            found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            return settings
        for each in fields(cls):
            value = found.get(each.name)
            if type(value) is type(getattr(settings, each.name)):
                setattr(settings, each.name, value)
        settings.filters = [each for each in settings.filters if isinstance(each, str)]
        settings.columns = {
            mode: [each for each in names if isinstance(each, str)]
            for mode, names in settings.columns.items()
            if isinstance(names, list)
        }
        settings.list_share = max(20, min(80, settings.list_share))
        return settings

    def save(self, path: Path) -> str:
        """Write to a file with mode 0600, as filters may quote data; return the error, if any."""
        self.filters = self.filters[-MAX_FILTERS:]
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            new = path.with_suffix(".new")
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                json.dump(asdict(self), file, indent=1)
            new.replace(path)
        except OSError as error:
            return f"{path}: {error.strerror or error}"
        return ""


def settings_path() -> Path:
    """
    Return the path of the settings file.

    Source: https://specifications.freedesktop.org/basedir-spec/latest/
    """
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    base = Path(folder) if folder.startswith("/") else Path.home() / ".config"
    return base / "kafkashark" / "browse.json"
