"""Writes what the list shows to files: rows, or the packets of exchanges."""

from __future__ import annotations

from pathlib import Path

from browse.listing.capture_access import CaptureAccess, Pass
from browse.listing.shown_rows import ShownRows
from dissector.cli.export import export
from dissector.cli.output import write_rows

_ROW_FORMATS = {".ndjson": "ndjson", ".csv": "csv", ".txt": "table"}
FORMATS = (".pcapng", *_ROW_FORMATS)
"""Ends of the names of files."""


class RowExport(Pass):
    """Writes the rows in their order; ndjson and CSV with all columns, text with those shown."""

    def __init__(
        self, access: CaptureAccess, shown: ShownRows, columns: tuple[str, ...], path: Path
    ) -> None:
        super().__init__(access.first)
        self._shown = shown
        self._columns = columns
        self._path = path

    def write(self) -> None:
        """Write; for a thread."""
        self.run(self._write)

    def cancel(self) -> None:
        """Go on: rows are written in a moment, and the capture is still needed."""

    def _write(self) -> None:
        form = _ROW_FORMATS[self._path.suffix]
        parts = list(self._shown.columns())
        names = [name for name in (parts[0] if parts else self._columns) if " " not in name]
        chosen = [{name: part[name] for name in names} for part in parts]
        write_rows(chosen, form, str(self._path), names, self._columns)


class PacketExport(Pass):
    """Writes the packets of the exchanges that pass a filter, as the command `export` does."""

    def __init__(self, access: CaptureAccess, text: str, path: Path) -> None:
        super().__init__(access.again(None, False))
        self._text = text
        self._path = path

    def write(self) -> None:
        """Write; for a thread."""
        self.run(self._write)

    def _write(self) -> None:
        options = self.source.capture.options
        export(
            self.source.capture.paths,
            self._text or None,
            str(self._path),
            connections=False,
            ports=list(options.ports),
            max_frame_bytes=options.max_frame_bytes,
            keylogs=list(options.keylogs),
            jobs=options.jobs,
        )
