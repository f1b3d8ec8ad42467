"""All declared fields: of APIs, headers, embedded messages and records."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

from dissector.protocol import embedded, headers
from dissector.protocol.apis import all_apis
from dissector.protocol.schema import Field, Schema


def declarations() -> Iterator[tuple[str, Schema]]:
    for api in all_apis():
        yield f"{api.name}.request", api.request
        yield f"{api.name}.response", api.response
    rooms = pkgutil.walk_packages(embedded.__path__, embedded.__name__ + ".")
    for module in [headers, *(importlib.import_module(room.name) for room in rooms)]:
        for name, found in vars(module).items():
            if isinstance(found, Schema):
                yield name, found


def _leaves(path: str, below: tuple[Field, ...]) -> Iterator[tuple[str, Field]]:
    for each in below:
        if each.fields:
            yield from _leaves(f"{path}.{each.name}", each.fields)
        else:
            yield f"{path}.{each.name}", each


FIELDS = [found for path, schema in declarations() for found in _leaves(path, schema.fields)]
"""Path and declaration of each field without subfields, in any version."""
