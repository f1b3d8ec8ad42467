"""The roles of declared fields."""

from __future__ import annotations

from functools import cache

from dissector.protocol.schema import Field
from dissector.redaction.messages.field_role import Role
from dissector.redaction.messages.redaction_table import ROLE_BY_ENTITY, ROLE_BY_NAME, ROLE_BY_PATH

_WITH_CONTENT = ("string", "bytes", "records", "uuid")


def needs_role(field: Field) -> bool:
    """Return whether a field holds text, bytes, records, or an identifying id."""
    kind = field.type.removeprefix("[]")
    return kind in _WITH_CONTENT or (kind == "int64" and _found(field.name, field) is not None)


@cache
def role_of(path: str, field: Field) -> Role | None:
    """Return the role of a field; `path` begins with API and kind; None: it has no role."""
    return _found(path, field) if needs_role(field) else None


def _found(path: str, field: Field) -> Role | None:
    if field.type.removeprefix("[]") == "int64":
        found = ROLE_BY_ENTITY.get(field.entity) or ROLE_BY_NAME.get(field.name)
        return found if found is Role.PRODUCER_ID else None
    parts = path.split(".")
    ends = (ROLE_BY_PATH.get(".".join(parts[start:])) for start in range(len(parts)))
    found = next((role for role in ends if role is not None), None)
    return found or ROLE_BY_ENTITY.get(field.entity) or ROLE_BY_NAME.get(field.name)
