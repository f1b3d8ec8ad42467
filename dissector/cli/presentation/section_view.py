"""The view of reports in sections, a table each: chosen columns, order, limit, layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dissector.cli.declared.answer_options import SectionOptions
from dissector.cli.output import write_parquet, write_rows
from dissector.cli.presentation import table_options
from dissector.cli.sorting import SortKey, sort_keys, sorted_rows
from dissector.column_catalogue import Catalogue
from dissector.engine.tables.column_types import Row
from dissector.engine.tables.columns_of import columns_of
from dissector.errors import UsageError
from dissector.protocol.embedded.secrecy.credentials import mask_texts
from dissector.protocol.login_secrets import Known
from dissector.view.tables.column_fitting import Layout

Tables = Mapping[str, tuple[str, tuple[str, ...]]]
"""Sections: heading and columns."""

Sections = Mapping[str, Sequence[Row]]
"""Sections: rows."""


@dataclass(slots=True)
class SectionView:
    """
    Presentation of the sections of a report.

    Attributes:
        tables: The sections, with the chosen columns and the ones that name a row.
        keys: The columns to sort by.
        limit: Maximum number of rows of a section.
        is_chosen: Whether columns were chosen.
        layout: Layout of the tables.
    """

    tables: Tables
    keys: list[SortKey] = field(default_factory=list)
    limit: int | None = None
    is_chosen: bool = False
    layout: Layout = field(default_factory=Layout)
    _left_out: dict[str, None] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        tables: Tables,
        given: SectionOptions,
        *,
        names: Sequence[str] = (),
        priority: Sequence[str] = (),
    ) -> SectionView:
        """
        Return the view that options describe.

        Args:
            tables: The sections.
            given: The options.
            names: The columns that name a row, and are always shown.
            priority: The columns that a narrow terminal shows first.

        Raises:
            UsageError: No section has such a column.
        """
        chosen = table_options.chosen_columns(given)
        known = tuple(dict.fromkeys(name for _, every in tables.values() for name in every))
        keys = sort_keys(given.sort, known) if given.sort is not None else []
        left_out: dict[str, None] = {}
        layout = Layout(
            priority,
            bool(chosen),
            table_options.has_color(given, given.output),
            lambda each: left_out.update(dict.fromkeys(each)),
        )
        shown = _with_columns(tables, chosen, known, names)
        return cls(shown, keys, given.limit, bool(chosen), layout, left_out)

    def arranged(self, sections: Sections, known: Known) -> Sections:
        """
        Return the first rows of each section, sorted, and without secrets in their texts.

        Args:
            sections: The sections; they are sorted by the columns that they have.
            known: The secrets that logins showed.
        """
        return {name: mask_texts(self._arranged(rows), known) for name, rows in sections.items()}

    def rows(self, sections: Sections) -> list[Row]:
        """Return the rows of arranged sections with the name of the section, and its columns."""
        return [
            {"section": name, **row}
            for name, rows in sections.items()
            for row in self.selected(name, rows)
        ]

    def selected(self, section: str, rows: Sequence[Row]) -> Sequence[Row]:
        """Return the rows of a section with the chosen columns only; with all if none is chosen."""
        if not self.is_chosen:
            return rows
        shown = self.tables[section][1]
        return [{name: row[name] for name in shown} for row in rows]

    def write_rows(
        self, sections: Sections, form: str, output: str | None, catalogue: Catalogue
    ) -> None:
        """
        Write arranged sections as one table of rows: CSV or Parquet.

        Several sections have all their columns, and the name of the section before them.

        Args:
            sections: The sections.
            form: The format.
            output: File, or None for stdout.
            catalogue: The columns that have a type; others are text.
        """
        several = ("section",) if len(self.tables) > 1 else ()
        every = (name for _, columns in self.tables.values() for name in columns)
        columns = tuple(dict.fromkeys((*several, *every)))
        rows = [{name: _plain(row.get(name)) for name in columns} for row in self.rows(sections)]
        parts = [columns_of(rows)] if rows else []
        if form == "parquet":
            from dissector.engine.parquet.parquet_types import types_of

            write_parquet(parts, types_of(catalogue, columns), output)
        else:
            write_rows(parts, form, output, columns, columns)

    def report_left_out(self) -> None:
        """Report columns that the terminal is too narrow for."""
        if self._left_out:
            table_options.report_left_out(self._left_out)

    def _arranged(self, rows: Sequence[Row]) -> Sequence[Row]:
        present = [key for key in self.keys if rows and key.name in rows[0]]
        return (sorted_rows(rows, present) if present else rows)[: self.limit]


def _plain(value: object) -> object:
    """Return a value of a cell; numbers by name as texts."""
    if isinstance(value, Mapping):
        return [f"{name} {count}" for name, count in value.items()]
    return value


def _with_columns(
    tables: Tables, chosen: Sequence[str], known: Sequence[str], names: Sequence[str]
) -> Tables:
    wanted = dict.fromkeys((*names, *chosen))
    for name in chosen:
        if name not in known:
            raise UsageError(f"--columns: no column {name!r}; columns are {', '.join(known)}")
    if not chosen:
        return tables
    return {
        section: (title, tuple(name for name in wanted if name in every))
        for section, (title, every) in tables.items()
    }
