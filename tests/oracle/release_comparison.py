"""Hold what a release of Kafka reads and writes against our reading and our bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dissector.protocol.schema import Schema, Versions
from tests.oracle.kafka_classes import Oracle
from tests.oracle.kafka_json_values import Names, kafka_json


@dataclass(frozen=True)
class Subject:
    """
    A message as a release names it.

    Attributes:
        schema: Our declaration.
        which: Arguments of `Oracle.message`.
        names: What the release calls fields that it calls otherwise than we do.
        lag: What to take from our version to have Kafka's.
    """

    schema: Schema
    which: Mapping[str, Any]
    names: Names = field(default_factory=dict)
    lag: int = 0

    def versions(self, oracle: Oracle) -> Versions:
        """Return the versions that a release knows, by our numbers."""
        known = oracle.versions(**self.which)
        return Versions(known.low + self.lag, known.high + self.lag)

    def agrees(self, oracle: Oracle, version: int, body: Mapping[str, Any], data: bytes) -> None:
        """Assert that a release reads a body as we do, to its end, and writes the same bytes."""
        answer = oracle.message(version - self.lag, data, **self.which)
        where = f"{dict(self.which)} v{version} in Kafka {oracle.jars.version}: {data.hex()}"
        assert answer.left == 0, where
        assert answer.value == kafka_json(self.schema.fields, version, body, self.names), where
        assert answer.again == data, where
