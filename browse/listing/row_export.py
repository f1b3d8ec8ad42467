"""Export of shown rows, or of the packets of exchanges."""

from __future__ import annotations

from pathlib import Path

from browse.listing.capture_access import CaptureAccess, Pass
from browse.rows.shown_rows import ShownRows
from dissector.cli.output import write_rows
from dissector.errors import UsageError
from dissector.query.packet_export import MASKS_REFUSED, export_capture


class RowExport(Pass):
    """Writes all columns of the rows in their order, as ndjson or CSV."""

    def __init__(self, access: CaptureAccess, shown: ShownRows, form: str, path: Path) -> None:
        super().__init__(access.first)
        self._shown = shown
        self._form = form
        self._path = path

    def write(self) -> None:
        """Write, in a background thread."""
        self.run(self._write)

    def cancel(self) -> None:
        """Do nothing: writing takes only a moment, and the capture is still in use."""

    def _write(self) -> None:
        names = self._names()
        chosen = ({name: part[name] for name in names} for part in self._shown.columns())
        write_rows(chosen, self._form, str(self._path), names, names)

    def _names(self) -> list[str]:
        """Return the columns that are no hidden ones."""
        parts = self._shown.parts.parts
        return [name for name in (parts[0] if parts else ()) if " " not in name]


class PacketExport(Pass):
    """Writes the packets of matching exchanges, as the command `export` does."""

    def __init__(self, access: CaptureAccess, text: str, path: Path) -> None:
        super().__init__(access.reopen(None, False))
        self._text = text
        self._path = path

    def write(self) -> None:
        """Write, in a background thread."""
        self.run(self._write)

    def _write(self) -> None:
        capture = self.source.capture
        if capture.options.values is not None and capture.options.values.masks:
            raise UsageError(MASKS_REFUSED)
        export_capture(capture, self._text or None, self._path, connections=False)
