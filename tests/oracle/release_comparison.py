"""Compare decoding and encoding by a release of Kafka with ours."""

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
    A message under the names of a release.

    Attributes:
        schema: Our declaration.
        which: Arguments of `Oracle.message`.
        names: Fields with other names in the release.
        lag: Difference of our version number to Kafka's.
    """

    schema: Schema
    which: Mapping[str, Any]
    names: Names = field(default_factory=dict)
    lag: int = 0

    def versions(self, oracle: Oracle) -> Versions:
        """Return the versions in a release, by our numbers."""
        known = oracle.versions(**self.which)
        return Versions(known.low + self.lag, known.high + self.lag)

    def assert_agrees(
        self, oracle: Oracle, version: int, body: Mapping[str, Any], data: bytes
    ) -> None:
        """Assert that a release decodes a body like us, to its end, and encodes the same bytes."""
        answer = oracle.message(version - self.lag, data, **self.which)
        where = f"{dict(self.which)} v{version} in Kafka {oracle.jars.version}: {data.hex()}"
        assert answer.left == 0, where
        assert answer.value == kafka_json(self.schema.fields, version, body, self.names), where
        assert answer.reencoded == data, where
