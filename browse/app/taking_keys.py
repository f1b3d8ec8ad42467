"""Keys that take something out: copies of a row, and files of what is shown."""

from __future__ import annotations

from pathlib import Path

from browse.app.browse_base import run_in_thread
from browse.app.choice_screen import ChoiceScreen
from browse.app.copy_forms import copy_forms
from browse.app.finding_keys import FindingKeys
from browse.app.prompt_screen import PromptScreen
from browse.listing.capture_access import Pass
from browse.listing.field_column import FieldColumnPass
from browse.listing.row_export import FORMATS, PacketExport, RowExport
from dissector.errors import DissectorError


class TakingKeys(FindingKeys):
    """The actions of these keys."""

    _export: Pass | None = None
    _exported = ""
    _column: FieldColumnPass | None = None

    def action_copy(self) -> None:
        """Offer the forms in which the chosen row can be copied."""
        row = self.rows.chosen
        if row is None:
            return
        access = self.session.access
        forms = copy_forms(
            self.session.shown.parts.row(row),
            self.rows.text_of(self.rows.cursor),
            self.chosen_exchange,
            access.first.capture.paths,
            access.show_secrets,
        )
        titles = list(forms)

        def copy(index: int | None) -> None:
            if index is not None:
                text = forms[titles[index]]()
                self.copy_to_clipboard(text)
                self.tell(f"copied {titles[index]}: {len(text):,} characters")

        self.push_screen(ChoiceScreen("Copy", titles), copy)

    def action_export(self) -> None:
        """Ask for a file, and write what is shown."""
        count = f"{len(self.session.shown):,} {self.session.mode.name}"
        question = f"write {count} to a file ({', '.join(FORMATS)}):"

        def write(name: str | None) -> None:
            if name and name.strip():
                self.export_to(Path(name.strip()).expanduser())

        self.push_screen(PromptScreen(question), write)

    def export_to(self, path: Path) -> None:
        """Write what is shown; the name of the file gives the format."""
        if path.suffix not in FORMATS:
            self.tell(f"the name of the file must end with {', '.join(FORMATS)}")
            return
        if path.exists():
            self.tell(f"{path} exists: nothing is written")
            return
        session = self.session
        if path.suffix != ".pcapng":
            export: RowExport | PacketExport = RowExport(
                session.access, session.shown, tuple(self.rows.columns), path
            )
        elif session.access.is_live or "-" in session.access.first.capture.paths:
            self.tell("packets are exported from files only")
            return
        else:
            export = PacketExport(session.access, session.filter_text, path)
        self._export, self._exported = export, str(path)
        session.watch(export)
        run_in_thread(export.write)

    def take_in(self) -> None:
        """Take in what threads have found; report the end of an export."""
        super().take_in()
        if self._column is not None and self._column.is_done:
            self._column = None
            self.rows.rows_changed()
        export = self._export
        if export is not None and export.is_done:
            self._export = None
            self.tell(export.failure or f"{self._exported} is written")

    def add_field_column(self, name: str) -> None:
        """Show a field as a column of the list of exchanges."""
        if self.session.mode.name != "exchanges":
            self.tell("fields are columns of the list of exchanges: key 1")
            return
        if name not in self.rows.columns:
            parts = self.session.loading.parts
            try:
                column = FieldColumnPass(self.session.access, parts, name)
            except DissectorError as error:
                self.tell(str(error))
                return
            self._column = column
            self.session.watch(column)
            run_in_thread(column.read)
            at = self.rows.column + 1
            self.rows.columns = (*self.rows.columns[:at], name, *self.rows.columns[at:])
        self.rows.column = list(self.rows.columns).index(name)
        self.rows.rows_changed()
