"""The clients that play the scenarios, and the versions they have here."""

from __future__ import annotations

import json
from pathlib import Path

_PROGRAMS = Path(__file__).with_name("programs")


def version(client: str) -> str:
    """Name a client family with its version, as the manifest shows it."""
    return _VERSIONS[client]()


def _librdkafka() -> str:
    import confluent_kafka

    library, binding = confluent_kafka.libversion()[0], confluent_kafka.__version__
    return f"librdkafka {library} (confluent-kafka {binding})"


def _kafka_python() -> str:
    import kafka

    return f"kafka-python {kafka.__version__}"


def _aiokafka() -> str:
    import aiokafka

    return f"aiokafka {aiokafka.__version__}"


def _kafkajs() -> str:
    package = json.loads((_PROGRAMS / "package.json").read_text(encoding="utf-8"))
    return f"kafkajs {package['dependencies']['kafkajs']}"


def _franz_go() -> str:
    module = (_PROGRAMS / "franz" / "go.mod").read_text(encoding="utf-8")
    return f"franz-go {module.split('twmb/franz-go v')[1].split()[0]}"


_VERSIONS = {
    "kafkajs": _kafkajs,
    "franz-go": _franz_go,
    "java": lambda: "Java clients and tools of the broker's release",
    "librdkafka": _librdkafka,
    "kafka-python": _kafka_python,
    "aiokafka": _aiokafka,
    "kafkashark-sweep": lambda: "a client of our own, kafkashark-sweep",
    "several": lambda: ", ".join((_librdkafka(), _kafka_python(), _aiokafka())),
}
