"""The ports of brokers, as Wireshark needs them: it knows Kafka by its port."""

from __future__ import annotations

from typing import NamedTuple

from dissector.engine.reading.connection_rows import connection_rows
from dissector.engine.reading.reader import Reading


class KafkaPorts(NamedTuple):
    """
    Ports on which Kafka is spoken.

    Attributes:
        plain: Without TLS, or behind a login.
        tls: Inside TLS.
    """

    plain: frozenset[int]
    tls: frozenset[int]


def kafka_ports(reading: Reading) -> KafkaPorts:
    """Return the ports of brokers in a capture that was read."""
    found: dict[bool, set[int]] = {False: set(), True: set()}
    for row in connection_rows(reading):
        if row["speaks"] == "kafka" and row["client"] is not None:
            broker = str(row["b" if row["client"] == "a" else "a"])
            found[row["tls_version"] is not None].add(int(broker.rpartition(":")[2]))
    return KafkaPorts(frozenset(found[False]), frozenset(found[True]))
