"""APIs that combine message definitions with the built-in declarations."""

from __future__ import annotations

from dissector.protocol.api import KINDS, Api
from dissector.protocol.definitions.overlay import is_renamed, overlay_schema
from dissector.protocol.definitions.schemas import Schemas


def overlay_api(schemas: Schemas, key: int, declared: Api | None) -> Api | None:
    """Return an API with the versions that definitions change or add."""
    definitions = {kind: schemas.with_key(kind, key) for kind in KINDS}
    first = next((each[0].definition for each in definitions.values() if each), None)
    if first is None:
        return declared
    name = first.name.removesuffix("Request").removesuffix("Response")
    if declared is not None and name != declared.name:
        if all(is_renamed(declared.schema(kind), definitions[kind]) for kind in KINDS):
            return declared
        declared = None
    merged = {
        kind: overlay_schema(declared.schema(kind) if declared else None, definitions[kind])
        for kind in KINDS
    }
    sources = {
        (kind, version): source
        for kind in KINDS
        for version, source in merged[kind].sources.items()
    }
    if declared is not None and not sources:
        return declared
    return Api(key, name, merged["request"].schema, merged["response"].schema, sources)
