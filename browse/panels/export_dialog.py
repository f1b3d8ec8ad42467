"""The dialog for exporting the shown rows: format and file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input, RadioButton, RadioSet, Static

from browse.panels.panel import Panel
from dissector.errors import UsageError
from dissector.file_roles import READS, WRITES, NamedPath, check_outputs
from dissector.view.text.escape import escaped

FORMATS: Mapping[str, str] = {
    "pcapng": "the packets, for Wireshark",
    "ndjson": "a JSON object for each row",
    "csv": "a table",
}
"""Formats and their descriptions."""


@dataclass(frozen=True, slots=True)
class ExportChoice:
    """
    The chosen format and file.

    Attributes:
        form: A key of the formats.
        path: The file.
    """

    form: str
    path: Path


class ExportDialog(Panel[ExportChoice]):
    """Asks for format and file; a second Enter confirms replacing a file."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Close"),
        Binding("ctrl+s", "submit", "Export"),
    ]
    DEFAULT_CSS = """
    ExportDialog > Vertical { height: auto; max-width: 76; }
    ExportDialog RadioSet { width: 1fr; border: none; }
    ExportDialog .-message { color: $text-error; height: auto; }
    """

    def __init__(
        self,
        rows: int,
        name: str = "export",
        *,
        formats: Mapping[str, str] = FORMATS,
        sources: Iterable[str] = (),
    ) -> None:
        """
        Create the dialog.

        Args:
            rows: Number of rows.
            name: Suggested file name, without suffix.
            formats: Available formats and their descriptions.
            sources: Files of the capture and key logs, which must not be replaced.
        """
        super().__init__(f"Export {rows:,} row{'s' * (rows != 1)}", "Enter exports, Esc closes")
        self._suggested = name
        self._formats = formats
        self._sources = [NamedPath(each, "open here", READS) for each in sources if each != "-"]
        self._confirmed: Path | None = None
        self._form = next(iter(formats))

    def contents(self) -> Iterable[Widget]:
        """Return the inputs for format and file, and a line for messages."""
        with RadioSet():
            for at, (form, meaning) in enumerate(self._formats.items()):
                yield RadioButton(Text(f"{form}: {meaning}"), value=at == 0)
        yield Input(f"{self._suggested}.{self._form}", id="path")
        yield Static("", id="message", classes="-message")

    def on_mount(self) -> None:
        """Focus the input for the file."""
        self.query_one("#path", Input).focus()

    @on(RadioSet.Changed)
    def _take_format(self, event: RadioSet.Changed) -> None:
        event.stop()
        before, self._form = self._form, list(self._formats)[event.index]
        line = self.query_one("#path", Input)
        if line.value.endswith(f".{before}"):
            line.value = f"{line.value.removesuffix(before)}{self._form}"

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_submit()

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        self._confirmed = None
        self._show_message("")

    def action_submit(self) -> None:
        """Return the choice, if the file can be written."""
        text = self.query_one("#path", Input).value.strip()
        path = Path(text).expanduser() if text else None
        refusal = "name a file" if path is None else self._refusal(path)
        if path is None or refusal:
            self._show_message(refusal)
            return
        if path.exists() and self._confirmed != path:
            self._confirmed = path
            self._show_message(f"{path} exists: press Enter again to replace it")
            return
        self.dismiss(ExportChoice(self._form, path))

    def _refusal(self, path: Path) -> str:
        """Return the reason why a file cannot be written; empty if it can."""
        try:
            if path.is_dir():
                return f"{path} is a folder"
            if not path.parent.is_dir():
                return f"no such folder: {path.parent}"
            path.resolve()  # fails for impossible names
            check_outputs([*self._sources, NamedPath(str(path), "the export", WRITES)])
        except UsageError as refusal:
            return str(refusal)
        except (OSError, ValueError) as error:
            return f"{path}: {error}"
        return ""

    def _show_message(self, text: str) -> None:
        self.query_one("#message", Static).update(Text(escaped(text)))
