"""Our declarations in the form of Kafka's definitions, as shipped in a release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dissector.protocol.apis import KEYS, api
from dissector.protocol.schema import Field, Schema, Versions

Spec = dict[str, Any]


def specs(name: str) -> tuple[Spec, Spec]:
    """Return the definitions of the request and the response of an API."""
    found = api(KEYS[name])
    assert found is not None
    return spec(f"{name}Request", "request", found.request), spec(
        f"{name}Response", "response", found.response
    )


def spec(name: str, kind: str, schema: Schema) -> Spec:
    """Return the definition of a message."""
    out = {
        "type": kind,
        "name": name,
        "validVersions": _text(schema.versions),
        "flexibleVersions": _text(schema.flexible),
        "fields": [_field(each) for each in schema.fields],
    }
    return out if schema.key is None else {"apiKey": schema.key, **out}


def field(where: Spec, *path: str) -> Spec:
    """Return a field of a definition."""
    for name in path:
        where = next(each for each in where["fields"] if each["name"] == name)
    return where


def save(folder: Path, *definitions: Spec) -> Path:
    """Write definitions into a folder; return it."""
    folder.mkdir(exist_ok=True)
    for each in definitions:
        text = f"// As a release ships it.\n{json.dumps(each, indent=2)}"
        (folder / f"{each['name']}.json").write_text(text, encoding="utf-8")
    return folder


def _field(each: Field) -> Spec:
    word = each.type.replace("struct", each.kafka_name)
    out: Spec = {"name": each.kafka_name, "type": word, "versions": _text(each.versions)}
    if each.null.low <= each.null.high:
        out["nullableVersions"] = _text(each.null)
    if each.tag is not None:
        out |= {"tag": each.tag, "taggedVersions": _text(each.versions)}
    if each.default is not ...:
        out["default"] = "null" if each.default is None else str(each.default).lower()
    out |= {"ignorable": True} if each.ignorable else {}
    out |= {"mapKey": True} if each.key else {}
    out |= {"entityType": each.entity} if each.entity else {}
    out |= {"fields": [_field(inner) for inner in each.fields]} if each.fields else {}
    return out


def _text(versions: Versions) -> str:
    if versions.low > versions.high:
        return "none"
    if versions.high == 32767:
        return f"{versions.low}+"
    return f"{versions.low}-{versions.high}" if versions.low < versions.high else str(versions.low)
