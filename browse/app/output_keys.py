"""Keys for comments of packets, and for copying and exporting rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from browse.app.browse_base import run_in_thread
from browse.app.jump_keys import JumpKeys
from browse.app.prompt_screen import PromptScreen
from browse.listing.capture_access import Pass
from dissector.errors import DissectorError
from dissector.view.tables.secret_cells import packet_comments
from dissector.view.text.escape import escaped

MAX_COMMENT_BYTES = 0xFFFF
"""Limit of an option of pcapng."""

if TYPE_CHECKING:
    from browse.listing.field_column import FieldColumnPass
    from browse.panels.export_dialog import ExportChoice


class OutputKeys(JumpKeys):
    """Actions of these keys."""

    _export: Pass | None = None
    _exported = ""
    _column: FieldColumnPass | None = None
    _is_unsaved = False

    def action_comment(self) -> None:
        """Ask for the comment of the row's packet: of the commented one, if it has several."""
        exchange, row = self.chosen_exchange, self.rows.chosen
        if not self.session.mode.packets or row is None:
            self.show_notice("rows of this list have no packet")
            return
        if exchange is None:
            self.show_notice("the exchange is not read yet")
            return
        packets = self.session.shown.parts.cells(row, self.session.mode.packets)
        of_exchange = {"request": exchange.request_packet, "response": exchange.response_packet}
        kinds = [kind for kind, each in of_exchange.items() if each is not None and each in packets]
        if not kinds:
            self.show_notice("its packet completed no message")
            return
        kind = next((each for each in kinds if packet_comments(exchange, (each,), True)), kinds[0])
        packet, comments = of_exchange[kind] or 0, packet_comments(exchange, (kind,), True)
        masked = packet_comments(exchange, (kind,), self.session.access.show_secrets)
        shown = escaped(masked[-1]) if masked else ""
        several = f", the last of {len(comments)}" if len(comments) > 1 else ""

        def use(text: str | None) -> None:
            if text is not None and text != shown:
                self._comment(packet, comments[:-1], text.strip())

        question = f"comment of packet {packet:,}{several} (empty removes it):"
        self.push_screen(PromptScreen(question, shown), use)

    def _comment(self, packet: int, before: list[str], text: str) -> None:
        """Give a packet a comment after others, or remove it."""
        if len(text.encode()) > MAX_COMMENT_BYTES:
            self.show_notice(f"a comment has at most {MAX_COMMENT_BYTES:,} bytes")
            return
        self.session.access.comments[packet - 1] = [*before, text] if text else before
        self._is_unsaved = True
        self.show_details_again()
        done = "kept until the end" if text else "removed"
        self.show_notice(f"comment of packet {packet:,} is {done}: e writes packets to a pcapng")

    async def action_quit(self) -> None:
        """Quit; with comments that are in no file, at the second try."""
        if self._is_unsaved and self._can_export_packets:
            self._is_unsaved = False
            self.show_notice("comments are in no file: e writes them, q again quits without them")
            return
        await super().action_quit()

    @property
    def _can_export_packets(self) -> bool:
        access = self.session.access
        return not (self.is_web or access.is_live or "-" in access.first.capture.paths)

    def action_copy(self) -> None:
        """Offer forms of the chosen row for the clipboard."""
        from browse.app.copy_forms import copy_forms
        from browse.panels.copy_chooser import CopyChooser

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

        def copy(text: str | None) -> None:
            if text is not None:
                self.copy_to_clipboard(text)
                self.show_notice(f"copied {len(text):,} characters")

        self.push_screen(CopyChooser(list(forms.items())), copy)

    def action_export(self) -> None:
        """Ask for a format and a file, and export the shown rows."""
        if self.is_web:
            self.show_notice("no export in web browsers: the file would be on the server")
            return
        from browse.panels.export_dialog import ExportDialog

        capture = self.session.access.first.capture
        paths = [*capture.paths, *capture.options.keylogs]
        name = f"{Path(paths[0]).name.partition('.')[0]}-{self.session.mode.name}"

        def write(choice: ExportChoice | None) -> None:
            if choice is not None:
                self.export_to(choice.form, choice.path)

        self.push_screen(ExportDialog(len(self.session.shown), name, sources=paths), write)

    def export_to(self, form: str, path: Path) -> None:
        """Export the shown rows in a format of the dialog."""
        from browse.listing.row_export import PacketExport, RowExport

        session = self.session
        if form != "pcapng":
            export: RowExport | PacketExport = RowExport(session.access, session.shown, form, path)
        elif not self._can_export_packets:
            self.show_notice("packets can only be exported from files")
            return
        else:
            export = PacketExport(session.access, session.filter_text, path)
        self._export, self._exported = export, str(path)
        session.watch(export)
        run_in_thread(export.write)

    def take_in(self) -> None:
        """Collect the results of threads; report the end of an export."""
        super().take_in()
        if self._column is not None and self._column.is_done:
            self._column = None
            self.rows.rows_changed()
        export = self._export
        if export is not None and export.is_done:
            self._export = None
            from browse.listing.row_export import PacketExport

            if isinstance(export, PacketExport) and not export.failure:
                self._is_unsaved = False
            self.show_notice(export.failure or f"{self._exported} is written")

    def add_field_column(self, name: str) -> None:
        """Add a field as a column of the list of exchanges."""
        from browse.listing.field_column import FieldColumnPass

        if self.session.mode.name != "exchanges":
            self.show_notice("field columns require the list of exchanges: key 1")
            return
        if name not in self.rows.columns:
            parts = self.session.loading.parts
            try:
                column = FieldColumnPass(self.session.access, parts, name)
            except DissectorError as error:
                self.show_notice(str(error))
                return
            self._column = column
            self.session.watch(column)
            run_in_thread(column.read)
            at = self.rows.column + 1
            self.rows.columns = (*self.rows.columns[:at], name, *self.rows.columns[at:])
        self.rows.column = list(self.rows.columns).index(name)
        self.rows.rows_changed()
