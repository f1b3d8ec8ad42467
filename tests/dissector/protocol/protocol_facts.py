"""Protocol facts beside the project, with those of the newest release taking precedence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

NEWEST = "kafka-4.4"

_SAME = {
    "api_messages": ("api_key", "kind"),
    "embedded_messages": ("name",),
    "error_codes": ("code",),
}
"""By which fields an entry of the newest release takes the place of an older one."""


def facts(shared: Path, name: str) -> list[dict[str, Any]]:
    """Return the entries of a file, with newer ones replacing older."""
    files = [shared / "protocol" / f"{name}.json", shared / "protocol" / NEWEST / f"{name}.json"]
    entries = [entry for file in files for entry in json.loads(file.read_text())]
    return list({tuple(entry[key] for key in _SAME[name]): entry for entry in entries}.values())
