"""Advices on versions of clients."""

from __future__ import annotations

from advise.registry.advice import Rank, advice

_NEWER = (
    "kafka-clients 3.9 or 4.x",
    "librdkafka 2.x",
    "the current release of franz-go",
    "the current release of sarama",
    "kafka-python 2.2 or later",
    "kafkajs is not maintained: @confluentinc/kafka-javascript or @platformatic/kafka",
)

OLD_CLIENT = advice(
    "old-client",
    Rank.INFORMS,
    "Old version of a client library",
    what="A client says in ApiVersions that it is a release of years ago.",
    cost="Known errors of those releases are mended since, and newer brokers drop what they speak.",
    settings=_NEWER,
    source="KIP-511 (software in ApiVersions); KIP-896 (what 4.0 dropped)",
    java=(3.0, "oldest release of apache-kafka-java, as major.minor"),
    librdkafka=(2.0, "oldest release of librdkafka"),
    kafka_python=(2.0, "oldest release of kafka-python"),
    aiokafka=(0.8, "oldest release of aiokafka"),
)

MIXED_VERSIONS = advice(
    "mixed-versions",
    Rank.INFORMS,
    "Several versions of one library under one client id or in one group",
    what="Clients of one name run several releases of the same library.",
    cost="A deployment is half done, or one process was forgotten: they behave differently.",
    settings=_NEWER,
    source="KIP-511",
    count=(2, "versions"),
)

REMOVED_VERSIONS = advice(
    "removed-versions",
    Rank.RISKY,
    "API versions that newer brokers do not have",
    what="A client uses versions of APIs that Kafka 4.0 or later removed, and knows no newer ones.",
    cost="It stops at the upgrade of its brokers.",
    settings=_NEWER,
    source="KIP-896, KIP-724; kafkashark upgrade",
    count=(1, "requests with such a version"),
)
