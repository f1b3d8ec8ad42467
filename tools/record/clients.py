"""Client families of the scenarios, and their installed or pinned versions."""

from __future__ import annotations

import json
from pathlib import Path

_PROGRAMS = Path(__file__).with_name("programs")


def version(client: str) -> str:
    """Return a client family's name and version for the manifest."""
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


def _go(name: str, folder: str, module: str) -> str:
    wanted = (_PROGRAMS / folder / "go.mod").read_text(encoding="utf-8")
    return f"{name} {wanted.split(f'{module} v')[1].split()[0]}"


_VERSIONS = {
    "kafkajs": _kafkajs,
    "franz-go": lambda: _go("franz-go", "franz", "twmb/franz-go"),
    "sarama": lambda: _go("sarama", "sarama", "IBM/sarama"),
    "kafka-go": lambda: _go("kafka-go (segmentio)", "kafkago", "segmentio/kafka-go"),
    "java": lambda: "Java clients and tools of the broker's release",
    "librdkafka": _librdkafka,
    "kafka-python": _kafka_python,
    "aiokafka": _aiokafka,
    "kafkashark-sweep": lambda: "a client of our own, kafkashark-sweep",
    "several": lambda: ", ".join((_librdkafka(), _kafka_python(), _aiokafka())),
}
