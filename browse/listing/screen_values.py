"""Decoded keys and values on the screen; a thread reads the capture for its schemas."""

from __future__ import annotations

from collections.abc import Callable

from browse.listing.capture_access import CaptureAccess, Pass
from dissector.hooks.hook_types import Record
from dissector.query.contents.captured_schemas import learn_schemas
from dissector.values.value_masks import ValueMasks
from dissector.values.value_reader import NOTHING, DecodedValue, ValueReader

Spawn = Callable[[Callable[[], None]], object]
"""Runs a function in a thread."""


class SchemaPass(Pass):
    """
    Reads the schemas of a capture.

    Attributes:
        reader: Reads values by these schemas, and by those that the user named.
    """

    def __init__(self, access: CaptureAccess) -> None:
        super().__init__(access.reopen(None, False), access.total_bytes)
        self.reader = access.values.reader()

    def read(self) -> None:
        """Read the capture, in a background thread."""
        self.run(self._read)

    def _read(self) -> None:
        for window in self.windows():
            learn_schemas(self.source.capture, window, self.reader.store)
            del window


class ScreenValues:
    """
    Decodes keys and values where the screen shows them.

    The first unknown schema has a thread read the capture for its schemas; `poll` takes them.
    """

    def __init__(self, access: CaptureAccess, spawn: Spawn) -> None:
        self._access = access
        self._spawn = spawn
        self._masks = ValueMasks(access.values.masks)
        self._reader: ValueReader | None = None
        self._pass: SchemaPass | None = None

    def read(self, record: Record, is_key: bool) -> DecodedValue:
        """Return the decoded key or value of a record, by the schemas known so far."""
        if self._access.values.is_off or (record.key if is_key else record.value) is None:
            return NOTHING
        if self._reader is None:
            self._reader = self._access.values.reader()
            self.look_again(at_least_once=True)
        found = self._reader.read_record(record, is_key=is_key)
        return self._masks.masked(found, is_key=is_key)

    def look_again(self, *, at_least_once: bool = False) -> None:
        """Read the capture again for the next unknown schema, if it has grown."""
        if self._reader is not None and (at_least_once or self._access.is_live):
            self._reader.read_more = self._begin

    def _begin(self) -> None:
        if self._pass is None:
            self._pass = SchemaPass(self._access)
            self._spawn(self._pass.read)

    def poll(self) -> bool:
        """Take the schemas that a thread has read; return whether there are more than before."""
        if self._pass is None or not self._pass.is_done:
            return False
        found, self._pass = self._pass.reader, None
        has_more = self._reader is None or len(found.store) > len(self._reader.store)
        self._reader = found
        return has_more

    def close(self) -> None:
        """End the thread."""
        if self._pass is not None:
            self._pass.cancel()
