"""The codec of one version of a message: interpreted at first, compiled once that pays off."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from construct import Construct, Subconstruct

from dissector.notebook_forms import notebook_form
from dissector.protocol.codecs import emit
from dissector.protocol.codecs.compiled import FALLBACK_ERRORS, Read, Write, parse_by

COMPILE_AFTER = 30
"""
Number of messages of a version to parse, or to build, before compiling its codec.

Compiling costs as much time as it saves on ten to forty messages (fewer the larger they are). So a
small capture never waits for it, and a large one loses no more than that once.
"""


class Codec(Subconstruct):  # type: ignore[misc]
    """
    A `construct.Construct` for one version of one message.

    `parse(bytes)` returns a Container and ignores bytes after the message (`parse_stream` leaves
    the stream at its end); `build(mapping)` returns bytes. A missing key is written with its
    declared default, if any.

    Attributes:
        label: The message and its version; empty if unknown.
        fields: Kafka's path of each field in wire order, and its type, if the label is known.

    Raises:
        DecodeError: From `parse`, with the path of the field and the position of the byte.
        EncodeError: From `build`, with the path of the field.
    """

    def __init__(self, construct: Construct) -> None:
        super().__init__(construct)
        self.label = ""
        self.fields: Mapping[str, str] = {}
        self._parse_count = self._build_count = 0
        self._read: Read | None = None
        self._write: Write | None = None

    def __repr__(self) -> str:
        if not self.label:
            return str(super().__repr__())
        count = len(self.fields)
        return f"<Codec {self.label}, {count} field{'s' * (count != 1)}>"

    def _repr_html_(self) -> str:
        return notebook_form(self)

    def parse(self, data: bytes, **_: Any) -> Any:
        """Parse a message from the beginning of the bytes."""
        read = self._read or self._reader()
        if read is not None and data.__class__ is bytes:
            try:
                return read(data, 0)[0]
            except FALLBACK_ERRORS:
                pass
        return self.subcon._parse(io.BytesIO(data), None, "")

    def build(self, obj: Any, **_: Any) -> bytes:
        """Encode a message."""
        write = self._write or self._writer()
        if write is not None:
            try:
                return write(obj)
            except FALLBACK_ERRORS:
                pass
        stream = io.BytesIO()
        self.subcon._build(obj, stream, None, "")
        return stream.getvalue()

    def parse_stream(self, stream: Any, **_: Any) -> Any:
        """Parse a message from the stream's current position."""
        return self._parse(stream, None, "")

    def _parse(self, stream: Any, context: Any, path: Any) -> Any:
        read = self._read or self._reader()
        if read is None:
            return self.subcon._parse(stream, context, path)
        return parse_by(read, stream, self.subcon._parse)

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        stream.write(self.build(obj))
        return obj

    def _emitparse(self, code: Any) -> str:
        return str(self.subcon._compileparse(code))

    def _emitbuild(self, code: Any) -> str:
        return str(self.subcon._compilebuild(code))

    @property
    def compiled(self) -> Read | None:
        """The compiled parser; None until it is compiled."""
        return self._read

    def _reader(self) -> Read | None:
        self._parse_count += 1
        if self._parse_count > COMPILE_AFTER:
            self._read = emit.compile_reader(self.subcon)
        return self._read

    def _writer(self) -> Write | None:
        self._build_count += 1
        if self._build_count > COMPILE_AFTER:
            self._write = emit.compile_writer(self.subcon)
        return self._write
