"""The form of rows in reports."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]
