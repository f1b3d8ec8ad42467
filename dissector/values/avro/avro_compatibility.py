"""
Whether values of one Avro schema can be read by another.

Source: https://avro.apache.org/docs/1.12.0/specification/#schema-resolution
"""

from __future__ import annotations

from typing import Any

from dissector.values.value_limits import MAX_SCHEMA_DEPTH

_PROMOTIONS = {
    "int": {"long", "float", "double"},
    "long": {"float", "double"},
    "float": {"double"},
    "string": {"bytes"},
    "bytes": {"string"},
}
_NAMED = ("record", "error", "enum", "fixed")


def reading_problem(reader: Any, writer: Any) -> str:
    """
    Return why a schema can't read values of another; empty if it can.

    Names that neither declares are taken for equal.

    Args:
        reader: The schema that reads, as JSON that `AvroSchema` accepts.
        writer: The schema of the values.
    """
    return _Comparison(reader, writer).problem(reader, writer, "", 0)


class _Comparison:
    """Two schemas with their named types; what was compared once is not again."""

    def __init__(self, reader: Any, writer: Any) -> None:
        self._reader_names = _named_types(reader)
        self._writer_names = _named_types(writer)
        self._seen: set[tuple[int, int]] = set()

    def problem(self, reader: Any, writer: Any, path: str, depth: int) -> str:
        """Return why one can't read the other."""
        reader = _resolved(reader, self._reader_names)
        writer = _resolved(writer, self._writer_names)
        if depth > MAX_SCHEMA_DEPTH or (id(reader), id(writer)) in self._seen:
            return ""
        if isinstance(writer, list):
            problems = (self.problem(reader, each, path, depth + 1) for each in writer)
            return next(filter(None, problems), "")
        if isinstance(reader, list):
            problems_of = [self.problem(each, writer, path, depth + 1) for each in reader]
            return "" if "" in problems_of or not reader else problems_of[0]
        read, written = _kind(reader), _kind(writer)
        if read is None or written is None:
            return ""
        if read != written:
            is_promoted = read in _PROMOTIONS.get(written, ())
            return "" if is_promoted else f"{path or 'the value'} was {written} and is {read}"
        if read in _NAMED or read in ("array", "map"):
            self._seen.add((id(reader), id(writer)))
            return self._inside(read, reader, writer, path, depth)
        return ""

    def _inside(self, kind: str, reader: Any, writer: Any, path: str, depth: int) -> str:
        match kind:
            case "array":
                return self.problem(reader["items"], writer["items"], f"{path}[]", depth + 1)
            case "map":
                return self.problem(reader["values"], writer["values"], f"{path}{{}}", depth + 1)
            case "fixed":
                same = reader["size"] == writer["size"]
                return "" if same else f"{path} was of {writer['size']} bytes"
            case "enum":
                gone = set(writer["symbols"]) - set(reader["symbols"])
                is_known = not gone or "default" in reader
                return "" if is_known else f"{path} lacks the symbol {min(gone)[:60]!r}"
        fields = {each["name"]: each["type"] for each in writer["fields"]}
        for field in reader["fields"]:
            names = [field["name"], *_aliases(field)]
            at = f"{path}.{field['name'][:60]}".lstrip(".")
            found = next((name for name in names if name in fields), None)
            if found is None:
                if "default" not in field:
                    return f"{at} is new and has no default"
            elif problem := self.problem(field["type"], fields[found], at, depth + 1):
                return problem
        return ""


def _aliases(field: Any) -> list[str]:
    aliases = field.get("aliases")
    return [each for each in aliases if isinstance(each, str)] if isinstance(aliases, list) else []


def _kind(schema: Any) -> str | None:
    """Return the type of a schema; None if it is a name that is not declared."""
    if isinstance(schema, str):
        return schema if schema in _PRIMITIVES else None
    kind = schema.get("type")
    return kind if isinstance(kind, str) else None


_PRIMITIVES = {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}


def _resolved(schema: Any, names: dict[str, Any]) -> Any:
    """Return a schema without the objects around it, and in place of a name."""
    for _ in range(MAX_SCHEMA_DEPTH):
        if isinstance(schema, str) and schema not in _PRIMITIVES:
            found = names.get(schema.rpartition(".")[2])
            if found is None:
                return schema
            return found
        if not isinstance(schema, dict) or schema.get("type") in _NAMED:
            return schema
        if schema.get("type") in ("array", "map"):
            return schema
        schema = schema["type"]
    return schema


def _named_types(schema: Any) -> dict[str, Any]:
    """Return the declared types by the last part of their names."""
    names: dict[str, Any] = {}
    waiting = [schema]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list):
            waiting.extend(each)
        elif isinstance(each, dict):
            if each.get("type") in _NAMED and isinstance(each.get("name"), str):
                names.setdefault(each["name"].rpartition(".")[2], each)
            waiting += [each[name] for name in ("type", "items", "values") if name in each]
            fields = each.get("fields")
            if isinstance(fields, list):
                waiting += [field["type"] for field in fields if "type" in field]
    return names
