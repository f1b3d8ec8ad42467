"""Loading of a body field into a column of the list."""

from __future__ import annotations

from typing import Any

from browse.listing.capture_access import CaptureAccess, Pass
from browse.rows.row_parts import RowParts
from dissector.cli.presentation.operand_columns import operand_cells, parse_operands
from dissector.engine.tables.column_kinds import coded


class FieldColumnPass(Pass):
    """
    A pass that fills a column of the list of exchanges.

    Attributes:
        name: Name of the column: a field, as in filters.
    """

    def __init__(self, access: CaptureAccess, parts: RowParts, name: str) -> None:
        """
        Prepare the pass.

        Raises:
            DissectorError: The field does not exist.
        """
        super().__init__(access.reopen(None, False), access.total_bytes)
        self.name = name
        self._operands = parse_operands(self.source, [name])
        self._parts = parts
        self._show_secrets = access.show_secrets
        self._cells: list[Any] = []
        self._filled = 0

    def read(self) -> None:
        """Read the capture, in a background thread."""
        self.run(self._read)

    def _read(self) -> None:
        for window in self.windows():
            for each in self.source.capture.exchanges_of(window):
                cells = operand_cells(each, self._operands, self._show_secrets, False)
                self._cells.append(cells[self.name])
            self._fill()
            del window

    def _fill(self) -> None:
        """Add the column to the parts read so far; windows may differ from parts in a pipe."""
        ends = self._parts.ends
        while self._filled < len(ends) and ends[self._filled] <= len(self._cells):
            begin, end = self._parts.begin_of(self._filled), ends[self._filled]
            column = coded(self._cells[begin:end])
            self._parts.add_column(begin, self.name, column)
            self._filled += 1
