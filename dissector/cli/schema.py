"""`kafkashark schema`: the declared messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dissector.cli.declared.file_options import SchemaOptions
from dissector.cli.output import write_lines
from dissector.errors import UsageError, suggestion
from dissector.protocol.api import KINDS, Api
from dissector.protocol.apis import all_apis, api, api_keys
from dissector.protocol.schema import Field
from dissector.view.tables.row_formats import table_lines
from dissector.view.text.value_text import json_text


def schema(given: SchemaOptions) -> None:
    """Print the declaration of an API at a version; of all APIs, their names and versions."""
    name, version = given.name, given.version
    chosen = all_apis() if name is None else [_find_api(name)]
    if version is not None and version not in chosen[0].request.versions:
        versions = chosen[0].request.versions_text
        raise UsageError(f"{chosen[0].name} has no version {version}; known: {versions}")
    if given.form == "ndjson":
        lines: Iterator[str] = (json_text(row) for row in _rows(chosen, version))
    elif name is None:
        lines = table_lines(map(_overview, chosen), list(_overview(chosen[0])))
    else:
        lines = declaration_lines(
            chosen[0], chosen[0].request.versions.high if version is None else version
        )
    write_lines(lines, given.output)


def _find_api(name: str) -> Api:
    keys = {api_name.lower(): key for api_name, key in api_keys().items()}
    key = int(name) if name.isdecimal() else keys.get(name.lower())
    found = None if key is None else api(key)
    if found is None:
        hint = suggestion(name, api_keys()) or "; `kafkashark schema` lists them"
        raise UsageError(f"no API has the name or key {name!r}{hint}")
    return found


def _overview(each: Api) -> dict[str, Any]:
    flexible = each.request.flexible
    low = max(flexible.low, each.request.versions.low)
    never = flexible.low > flexible.high
    return {
        "api_key": each.key,
        "api": each.name,
        "versions": each.request.versions_text,
        "flexible": "never" if never else f"{low}+",
    }


def _rows(chosen: list[Api], version: int | None) -> Iterator[dict[str, Any]]:
    for each in chosen:
        for kind in KINDS:
            declared = each.schema(kind)
            for at in declared.versions if version is None else [version]:
                yield {
                    "api_key": each.key,
                    "api": each.name,
                    "kind": kind,
                    "version": at,
                    "flexible": at in declared.flexible,
                    "fields": [_field(path, f, at) for path, f in declared.iter_fields(at)],
                }


def _field(path: str, field: Field, version: int) -> dict[str, Any]:
    return {
        "path": path,
        "type": field.type,
        "nullable": version in field.null,
        "tag": field.tag,
    }


def declaration_lines(each: Api, version: int) -> Iterator[str]:
    """Yield the fields of a request and its response at a version, as text."""
    for kind in KINDS:
        declared = each.schema(kind)
        flexible = ", flexible" if version in declared.flexible else ""
        known = f"known: {declared.versions_text}{flexible}"
        yield f"{each.name} {kind} v{version} (key {each.key}, {known})"
        for path, field in declared.iter_fields(version):
            depth = path.count(".") + 1
            marks = [
                *(["nullable"] if version in field.null else []),
                *([f"tag {field.tag}"] if field.tag is not None else []),
                *(["secret"] if field.secret else []),
            ]
            text = f"{'    ' * depth}{field.name}: {field.type}"
            yield f"{text}  ({', '.join(marks)})" if marks else text
        yield ""
