"""The clients that play the scenarios, and the versions they have here."""

from __future__ import annotations


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


_VERSIONS = {
    "java": lambda: "Java clients and tools of the broker's release",
    "librdkafka": _librdkafka,
    "kafka-python": _kafka_python,
    "aiokafka": _aiokafka,
    "several": lambda: ", ".join((_librdkafka(), _kafka_python(), _aiokafka())),
}
