"""What a user says about keys and values: sources of schemas, and formats of topics."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dissector.values.source_options import VALUES_VARIABLE

if TYPE_CHECKING:
    from dissector.values.value_reader import ValueReader


@dataclass(frozen=True, slots=True)
class ValueSettings:
    """
    How keys and values are decoded.

    Attributes:
        sources: Files and folders with schemas, besides those in the capture.
        formats: Formats of topics, as `orders=avro:order.avsc`.
        is_off: Whether nothing is decoded.
    """

    sources: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    is_off: bool = False

    @property
    def is_asked(self) -> bool:
        """Whether the user named any source or format."""
        return bool(self.sources or self.formats) and not self.is_off

    def with_variable(self) -> ValueSettings:
        """Return the settings; without sources, with those of the environment variable."""
        listed = os.environ.get(VALUES_VARIABLE, "").split(os.pathsep)
        sources = self.sources or tuple(name for name in listed if name)
        return ValueSettings(sources, self.formats, self.is_off)

    def reader(self) -> ValueReader:
        """
        Read the sources, and return a reader of values.

        Raises:
            UsageError: A source can't be read or has no schema, or a format is wrong.
        """
        from dissector.values.schemas.schema_files import add_source
        from dissector.values.schemas.schema_store import SchemaStore
        from dissector.values.topic_formats import TopicFormats
        from dissector.values.value_reader import ValueReader

        store = SchemaStore()
        for source in self.sources:
            add_source(store, source)
        return ValueReader(store, TopicFormats(self.formats))
