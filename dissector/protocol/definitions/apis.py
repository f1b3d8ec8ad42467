"""APIs as message definitions and the built-in declarations give them together."""

from __future__ import annotations

from dissector.protocol.api import Api, Kind
from dissector.protocol.definitions.overlay import is_renamed, overlay_schema
from dissector.protocol.definitions.schemas import Schemas

KINDS: tuple[Kind, Kind] = ("request", "response")


def overlay_api(schemas: Schemas, key: int, declared: Api | None) -> Api | None:
    """Return an API with the versions that definitions change or add."""
    found = {kind: schemas.with_key(kind, key) for kind in KINDS}
    given = next((each[0].definition for each in found.values() if each), None)
    if given is None:
        return declared
    name = given.name.removesuffix("Request").removesuffix("Response")
    if declared is not None and name != declared.name:
        if all(is_renamed(declared.schema(kind), found[kind]) for kind in KINDS):
            return declared
        declared = None
    made = {
        kind: overlay_schema(declared.schema(kind) if declared else None, found[kind])
        for kind in KINDS
    }
    sources = {
        (kind, version): source for kind in KINDS for version, source in made[kind].sources.items()
    }
    if declared is not None and not sources:
        return declared
    return Api(key, name, made["request"].schema, made["response"].schema, sources)
