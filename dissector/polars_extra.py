"""polars, of the extra `tables`: without it, importing it from here fails with one line."""

from __future__ import annotations

from dissector.errors import UsageError
from dissector.installation import extra_needed

try:
    import polars
except ModuleNotFoundError:
    raise UsageError(extra_needed("a table of polars", "tables")) from None

__all__ = ["polars"]
