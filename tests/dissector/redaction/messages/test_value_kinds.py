"""The kind by which a redaction replaces each field, as reviewed."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from dissector.protocol.field_meanings import meaning_of
from dissector.protocol.field_roles import ValueKind
from tests.dissector.protocol.declared_fields import FIELDS

TABLE = Path(__file__).with_name("kinds.txt")


def test_kinds_of_all_fields_equal_the_reviewed_table(request: pytest.FixtureRequest) -> None:
    fields: dict[ValueKind, dict[str, dict[str, None]]] = defaultdict(lambda: defaultdict(dict))
    for path, each in FIELDS:
        kind = meaning_of(each, path).kind
        if kind is not None:
            whole = path.split(".")
            depth = 2 if whole[1] in ("request", "response") else 1
            fields[kind][".".join(whole[:depth])][".".join(whole[depth:])] = None
    lines = [
        line
        for kind in ValueKind
        for line in (
            f"{kind.value}:",
            *(f"  {where}: {', '.join(paths)}" for where, paths in fields[kind].items()),
        )
    ]
    text = "\n".join(lines) + "\n"
    if request.config.getoption("--update-golden"):
        TABLE.write_text(text)
    assert text == TABLE.read_text(), "review the changes, then run with --update-golden"


def test_records_and_producer_ids() -> None:
    kinds = {path: meaning_of(each, path).kind for path, each in FIELDS}
    assert kinds["Produce.request.topic_data.partition_data.records"] is ValueKind.RECORDS
    assert kinds["InitProducerId.response.producer_id"] is ValueKind.PRODUCER_ID
    assert kinds["Fetch.response.responses.topic_id"] is ValueKind.ID
    assert kinds["Fetch.response.responses.partitions.high_watermark"] is None
