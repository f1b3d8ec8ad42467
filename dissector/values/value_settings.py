"""What a user says about keys and values: sources of schemas, and formats of topics."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dissector.errors import UsageError
from dissector.values.source_options import VALUES_VARIABLE

if TYPE_CHECKING:
    from dissector.values.value_reader import Registry, ValueReader


_URL = re.compile("https?://")
_LISTED = re.compile(rf"https?://[^{os.pathsep}]*(?::[0-9][^{os.pathsep}]*)?|[^{os.pathsep}]+")
"""A source in a list of sources; a URL has the sign that separates them in it."""


@dataclass(frozen=True, slots=True)
class ValueSettings:
    """
    How keys and values are decoded.

    Attributes:
        sources: Files, folders and URLs of registries with schemas, besides those in the capture.
        formats: Formats of topics, as `orders=avro:order.avsc`.
        is_off: Whether nothing is decoded.
        user: `NAME:PASSWORD` for the registries.
        masks: Fields that outputs hide, as `value.card`.
        scripts: Files with hooks.
    """

    sources: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    is_off: bool = False
    user: str = ""
    masks: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()

    @property
    def is_asked(self) -> bool:
        """Whether the user named any source, format or hook."""
        return bool(self.sources or self.formats or self._has_hooks) and not self.is_off

    @property
    def _has_hooks(self) -> bool:
        """Whether a script decodes keys or values."""
        from dissector.hooks.script_files import functions_of, load_script

        modules = map(load_script, self.scripts)
        return any(
            True for each in modules for kind in ("key", "value") for _ in functions_of(each, kind)
        )

    def with_variable(self) -> ValueSettings:
        """Return the settings; without sources, with those of the environment variable."""
        listed = _LISTED.findall(os.environ.get(VALUES_VARIABLE, ""))
        return replace(self, sources=self.sources or tuple(listed))

    def reader(self) -> ValueReader:
        """
        Read the sources, and return a reader of values.

        Raises:
            UsageError: A source can't be read or has no schema, a format is wrong, or a script
                fails.
        """
        from dissector.values.hooked_values import HookedValues
        from dissector.values.schemas.schema_files import add_source
        from dissector.values.schemas.schema_store import SchemaStore
        from dissector.values.topic_formats import TopicFormats
        from dissector.values.value_reader import ValueReader

        store = SchemaStore()
        urls = [source for source in self.sources if _URL.match(source)]
        registries: Sequence[Registry] = ()
        if urls:  # what speaks HTTP takes long to load
            from dissector.values.registry.registry_client import RegistryClient

            registries = [RegistryClient(url, self.user) for url in urls]
        for source in self.sources:
            if not _URL.match(source):
                add_source(store, source)
        if self.user and not registries:
            raise UsageError("--values-user: no --values names a registry, https://HOST[:PORT]")
        hooks = HookedValues(self.scripts, store.problems.append)
        return ValueReader(store, TopicFormats(self.formats), registries=registries, hooks=hooks)
