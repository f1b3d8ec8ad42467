"""Columns of each list: names, headings, widths, and cell texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rich.cells import cell_len, set_cell_size

from browse.listing.row_info import INFO
from dissector.column_catalogue import CONNECTIONS, EXCHANGES, MESSAGES, RECORDS, names
from dissector.view.tables.row_formats import cell
from dissector.view.text.time_style import STYLES, TimeStyle
from dissector.view.text.value_text import bytes_text, header_texts, time_ms_text

MAX_WIDTH = 40
"""Maximum width of a column; longer texts are cut."""
GAP = 2
MAX_BYTES = 256
"""Bytes kept of a record's key or value."""
SAMPLE_ROWS = 200
"""Number of rows that determine the widths."""
MIN_INFO = 36
"""Least width of the column `info`, which takes what the columns before it leave."""


class Mode(NamedTuple):
    """
    A kind of list.

    Attributes:
        name: Name on the screen and in options.
        columns: All columns.
        shown: Columns shown by default.
        key: Columns in capture order, the first that is not null; none: the order of reading.
        packets: Columns with packet numbers.
        time: Column with the time.
    """

    name: str
    columns: tuple[str, ...]
    shown: tuple[str, ...]
    key: tuple[str, ...]
    packets: tuple[str, ...]
    time: str


EXCHANGE_MODE = Mode(
    "exchanges",
    (*names(EXCHANGES), INFO),
    (
        *("request_packet", "request_time_ns", "client_id", "api", "api_version", "latency_ms"),
        *(INFO, "errors", "topics", "status", "client", "broker", "connection", "correlation_id"),
        *("response_packet", "request_bytes", "response_bytes", "problems"),
    ),
    ("request_packet", "response_packet"),
    ("request_packet", "response_packet"),
    "request_time_ns",
)
MODES: tuple[Mode, ...] = (
    EXCHANGE_MODE,
    Mode(
        "messages",
        (*names(MESSAGES), INFO),
        (
            *("packet", "time_ns", "source", "target", "api", "api_version", "kind"),
            *(INFO, "correlation_id", "client_id", "latency_ms", "errors", "topics", "bytes"),
            *("connection", "problems"),
        ),
        ("packet",),
        ("packet",),
        "time_ns",
    ),
    Mode(
        "records",
        names(RECORDS),
        (
            *("packet", "time_ns", "topic", "partition", "offset", "key", "value", "headers"),
            *("timestamp_ms", "api", "client_id", "codec", "producer_id", "sequence", "control"),
            *("status", "acks", "error"),
        ),
        (),
        ("packet",),
        "time_ns",
    ),
    Mode(
        "connections",
        names(CONNECTIONS),
        (
            *("connection", "a", "b", "speaks", "client", "tls_version"),
            *("tls_server_name", "tls_not_decrypted", "first_time_ns", "last_time_ns"),
            *("ended", "bytes_a", "bytes_b", "packets_a", "packets_b", "gaps_a", "gaps_b"),
            *("retransmissions_a", "retransmissions_b"),
        ),
        (),
        (),
        "first_time_ns",
    ),
    Mode(
        "events",
        ("time_ns", "end_ns", "kind", "subject", "event", "cause", "count", "text", "certain"),
        ("time_ns", "kind", "subject", "event", "count", "cause", "certain", "text"),
        (),
        (),
        "time_ns",
    ),
)

CONNECTION_MODE = MODES[3]

_TITLES = {
    "request_packet": "packet",
    "response_packet": "answer",
    "request_time_ns": "time",
    "response_time_ns": "answer_time",
    "time_ns": "time",
    "first_time_ns": "first",
    "last_time_ns": "last",
    "end_ns": "end",
    "api_version": "v",
    "correlation_id": "id",
    "request_bytes": "req_bytes",
    "response_bytes": "resp_bytes",
    "connection": "conn",
    "latency_ms": "ms",
}
_WIDE = {"text": 120, "value": 60, "problems": 80, "note": 80}


def mode_named(name: str) -> Mode | None:
    """Return the mode with a name."""
    return next((mode for mode in MODES if mode.name == name), None)


def title(name: str) -> str:
    """Return the heading of a column."""
    return _TITLES.get(name, name)


@dataclass
class TimeForms:
    """
    Form of times.

    Attributes:
        style: A key of `STYLES`.
        begin_ns: Time of the first packet.
        utc: Whether times are shown in UTC.
    """

    style: str = "r"
    begin_ns: int = 0
    utc: bool = False

    def next(self) -> str:
        """Go on to the next form; return its description."""
        keys = list(STYLES)
        self.style = keys[(keys.index(self.style) + 1) % len(keys)]
        return STYLES[self.style]

    def text(self, time_ns: int, before_ns: int | None) -> str:
        """Return a time as text; `before_ns` is the time of the row above."""
        style = TimeStyle(self.style, lambda: self.begin_ns, utc=self.utc)
        if before_ns is not None and self.style == "d":
            style.text(before_ns)
        return style.text(time_ns)


def is_time(name: str) -> bool:
    """Return whether a column holds times of packets."""
    return name.endswith("time_ns") or name == "end_ns"


def cell_text(name: str, value: Any) -> str:
    """Return a cell as text, safe for a terminal; times are shown by `TimeForms`."""
    if isinstance(value, bytes):
        return cell(name, _bytes_text(value))
    if name == "headers" and isinstance(value, list):
        return cell(name, header_texts(value))
    if name == "timestamp_ms" and isinstance(value, int):
        return time_ms_text(value)
    return cell(name, value)


def _bytes_text(value: bytes) -> str | None:
    """Return bytes as text or hex; they may be cut within a character."""
    if len(value) < MAX_BYTES:
        return bytes_text(value)
    texts = (bytes_text(value[: MAX_BYTES - cut]) for cut in range(4))
    return next((text for text in texts if text and not text.startswith("0x")), bytes_text(value))


class ColumnWidths:
    """
    Widths of columns side by side.

    Attributes:
        names: Names of the columns.
        widths: Width of each column.
        is_right: Whether a column is right-aligned, as numbers are.
    """

    def __init__(
        self,
        names: Sequence[str],
        samples: Iterable[Sequence[tuple[str, bool]]],
        *,
        room: int = 0,
        sorted_by: str | None = None,
    ) -> None:
        """
        Fit the widths to samples: texts, and whether they are numbers.

        `room` is the width of the screen; the heading of `sorted_by` has an arrow.
        """
        self.names = tuple(names)
        self.widths = [cell_len(title(name)) + (name == sorted_by) for name in names]
        self.is_right = [True] * len(self.names)
        has_rows = False
        for row in samples:
            has_rows = True
            for at, (text, is_number) in enumerate(row):
                limit = _WIDE.get(self.names[at], MAX_WIDTH)
                self.widths[at] = max(self.widths[at], min(limit, cell_len(text)))
                self.is_right[at] = self.is_right[at] and (is_number or not text)
        if not has_rows:
            self.is_right = [False] * len(self.names)
        if INFO in self.names:
            at = self.names.index(INFO)
            self.is_right[at] = False
            self.widths[at] = max(MIN_INFO, room - self.begin(at))

    def holds(self, row: Sequence[tuple[str, bool]]) -> bool:
        """Return whether the texts of a row fit, or are too long for any column."""
        limits = (_WIDE.get(name, MAX_WIDTH) for name in self.names)
        cells = zip(row, self.widths, limits, strict=True)
        return all(min(limit, cell_len(text)) <= width for (text, _), width, limit in cells)

    @property
    def total(self) -> int:
        """The width of a line."""
        return sum(self.widths) + GAP * max(0, len(self.widths) - 1)

    def line(self, cells: Iterable[str]) -> str:
        """Return a line of cells."""
        return (" " * GAP).join(map(_fit, cells, self.widths, self.is_right))

    def at(self, x: int) -> int | None:
        """Return the column at a position in a line."""
        begin = 0
        for index, width in enumerate(self.widths):
            if begin <= x < begin + width + GAP:
                return index
            begin += width + GAP
        return None

    def begin(self, index: int) -> int:
        """Return the position of a column."""
        return sum(self.widths[:index]) + GAP * index


def _fit(text: str, width: int, is_right: bool) -> str:
    size = len(text) if text.isascii() else cell_len(text)
    if size > width:
        return set_cell_size(text, width - 1) + "…"
    space = " " * (width - size)
    return space + text if is_right else text + space
