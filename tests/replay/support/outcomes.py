"""Artificial outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from construct import Container

from dissector.engine.exchanges.captured_exchange import CapturedExchange
from dissector.protocol.apis import KEYS, api
from dissector.protocol.messages import decode_response
from dissector.protocol.schema import Field
from replay.model.outcome import Outcome, RequestPart
from replay.model.step import Step
from tests import default_frames

Body = Mapping[str, Any]

MS = 1_000_000


def outcome(
    name: str,
    version: int,
    captured: Body | None,
    live: Body | None,
    *,
    request: Body | None = None,
    live_version: int | None = None,
    is_due: bool = True,
    number: int = 0,
    **more: Any,
) -> Outcome:
    """Return the outcome of a request, from both bodies; missing fields are zero."""
    key = KEYS[name]
    live_version = version if live_version is None else live_version
    found = api(key)
    assert found is not None
    step = Step(
        number,
        CapturedExchange(
            connection=3,
            client="10.0.0.1:5000",
            broker="10.0.0.2:9092",
            api_key=key,
            api_version=version,
            correlation_id=7,
            client_id="tester",
            request=default_frames.request(
                key, version, 7, "tester", **filled(found.request.fields, version, request or {})
            )[4:],
            response=None if captured is None else _answer(key, version, captured),
            expects_response=is_due,
            request_time_ns=0,
            response_time_ns=None if captured is None else 2 * MS,
        ),
    )
    response = None
    if live is not None:
        frame = _answer(key, live_version, live)
        response = decode_response(frame, key, live_version).body
    part = RequestPart(1, live_version, Container(), response)
    given = {"parts": [part], "latency_ns": MS, **more}
    return Outcome(step, version=live_version, response=response, **given)


def _answer(key: int, version: int, body: Body) -> bytes:
    found = api(key)
    assert found is not None
    values = filled(found.response.fields, version, body)
    return default_frames.response(key, version, 7, **values)[4:]


def filled(fields: tuple[Field, ...], version: int, body: Body) -> dict[str, Any]:
    """Return a body with zeros for missing fields, at all depths."""
    assert body.keys() <= {field.name for field in fields if version in field.versions}
    out: dict[str, Any] = {}
    for field in fields:
        if version not in field.versions:
            continue
        value = body.get(field.name, ...)
        if value is ...:
            value = field.zero(version)
        elif field.type == "[]struct" and value is not None:
            value = [filled(field.fields, version, each) for each in value]
        elif field.type == "struct" and value is not None:
            value = filled(field.fields, version, value)
        out[field.name] = value
    return out
