"""Loading of the exchanges into the list, window by window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from browse.listing.capture_access import CaptureAccess, Pass
from browse.listing.exchange_finder import ExchangeFinder
from browse.rows.row_parts import RowParts
from dissector.engine.exchanges.exchange import COLUMNS
from dissector.engine.exchanges.exchange_columns import exchange_columns
from dissector.engine.facts.topic_table import TopicNames
from dissector.engine.reading.capture import Window
from dissector.engine.tables.column_types import Coded, Columns
from dissector.protocol.context import using
from dissector.view.tables.secret_cells import SecretCells


class NamedTopics(Sequence[Any]):
    """Lists of topics; topic ids become names once these are known."""

    def __init__(self, lists: Sequence[Sequence[str | UUID]], names: TopicNames) -> None:
        self._lists = lists
        self._names = names

    def __len__(self) -> int:
        return len(self._lists)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        # `TopicNames.name` would read ahead through the capture before the first row is shown.
        known = self._names.by_id
        topics = self._lists[index]
        named = (each if isinstance(each, str) else known.get(each) for each in topics)
        texts = (name or str(topic) for name, topic in zip(named, topics, strict=True))
        return list(dict.fromkeys(texts))


class ExchangeLoading(Pass):
    """
    The first pass over a capture.

    Attributes:
        parts: Exchanges, with the columns of `pairs`.
        finder: Cache of the first windows.
    """

    def __init__(self, access: CaptureAccess) -> None:
        super().__init__(access.first, access.total_bytes)
        self.parts = RowParts()
        self.finder = ExchangeFinder(access.first.capture.names)
        self._windows: Iterator[Window] | None = None
        capture = access.first.capture
        self._cells = SecretCells(lambda: capture.logins, access.show_secrets)

    def start(self) -> None:
        """
        Read the first window, to report invalid files before the screen opens.

        Raises:
            CaptureError: A file can't be opened, or is not a capture.
        """
        self._windows = self.windows()
        for window in self._windows:
            self._add(window)
            return

    def load(self) -> None:
        """Read the rest, in a background thread."""
        self.run(self._load)

    def _load(self) -> None:
        for window in self._windows or self.windows():
            self._add(window)
            del window
        self.source.capture.names.mark_complete()

    def _add(self, window: Window) -> None:
        reading = self.source.capture.reading
        assert reading is not None
        if len(window.exchanges):
            self.finder.keep(len(self.parts), window, reading, evicting=False)
            self.parts.append(self._columns(window))

    def _columns(self, window: Window) -> Columns:
        capture = self.source.capture
        reading = capture.reading
        assert reading is not None
        summaries = capture.known_of(window)
        with using(capture.options.schemas):
            found = exchange_columns(
                window.exchanges,
                summaries,
                reading.files_of,
                reading.endpoints.of_all,
                reading.origins_of,
                reading.logs,
            )
        columns = self._cells.columns({name: found[name] for name in COLUMNS})
        topics = columns["topics"]
        assert isinstance(topics, Coded)
        return {**columns, "topics": Coded(topics.codes, NamedTopics(topics.values, capture.names))}
