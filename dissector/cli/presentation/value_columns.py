"""Columns of `records` from decoded keys and values: those of the catalogue, and fields by path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dissector.cli.capture_source import Source
from dissector.cli.presentation.operand_columns import cells_of, parse_operands
from dissector.column_catalogue import VALUES, names
from dissector.engine.tables.column_types import Columns
from dissector.filter import Row as FilterRow

VALUE_COLUMNS = names(VALUES)


class ValueColumns:
    """
    The columns of a command that need decoded keys and values.

    Attributes:
        chosen: Names of the catalogue.
        fields: Fields by path.
        masks: Whether fields are hidden, and so the bytes of records.
    """

    def __init__(self, source: Source, wanted: Sequence[str], *, by_default: bool) -> None:
        """
        Divide the wanted columns; without any, `by_default` says whether all are printed.

        Raises:
            FilterError: A name is unknown.
        """
        self.chosen = tuple(name for name in wanted if name in VALUE_COLUMNS)
        if not wanted and by_default:
            self.chosen = VALUE_COLUMNS
        paths = [each for each in wanted if each.startswith(("key.", "value."))]
        self.fields = parse_operands(source, paths, records=True)
        self._source = source
        settings = source.capture.options.values
        self.masks = settings is not None and bool(settings.masks)
        if self:
            source.record_values()

    def __bool__(self) -> bool:
        return bool(self.chosen or self.fields or self.masks)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all."""
        return *self.chosen, *(each.text for each in self.fields)

    def parts(self, parts: Iterable[Columns], *, as_text: bool) -> Iterator[Columns]:
        """Yield rows with these columns; `as_text`: fields by path are texts."""
        values = self._source.values
        if not self or values is None:
            return iter(parts)

        def cells(row: FilterRow) -> Mapping[str, Any]:
            return cells_of(row, self.fields, as_text=as_text)

        return values.parts(parts, self.chosen, cells if self.fields else None)
