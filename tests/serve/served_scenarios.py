"""Scenarios of the corpus with clients that can run against their captures."""

from __future__ import annotations

FAST = (
    "aiokafka-produce-codecs",
    "kafka39-kafka-python-as-0.8.2",
    "kafka4-aiokafka-transactions",
    "kafka4-librdkafka-codecs",
    "librdkafka-group-rebalance",
)
"""A client of each kind, a group, a transaction."""

LONG = (
    "demo",
    "kafka-python-produce-codecs",
    "kafka39-aiokafka-codecs",
    "kafka39-aiokafka-copies",
    *(
        f"kafka39-kafka-python-as-{each}"
        for each in (
            *("0.9", "0.10.0", "0.10.1", "0.11", "1.0", "1.1", "2.0", "2.1", "2.2", "2.3"),
            *("2.4", "2.5", "2.6", "2.8", "3.0", "3.3", "3.5", "3.7", "3.9"),
        )
    ),
    "kafka39-kafka-python-sasl",
    "kafka39-librdkafka-admin",
    "kafka39-librdkafka-fenced",
    "kafka39-librdkafka-group",
    "kafka39-librdkafka-idempotent",
    "kafka39-librdkafka-transactions",
    "kafka39-static-members",
    "kafka39-three-nodes",
    "kafka4-aiokafka-codecs",
    "kafka4-aiokafka-copies",
    "kafka4-denied",
    "kafka4-errors",
    "kafka4-static-members",
    "kafka4-aiokafka-group",
    "kafka4-aiokafka-tls",
    "kafka4-kafka-python-resumption",
    "kafka4-kafka-python-tls",
    "kafka4-librdkafka-sasl",
    *(
        f"kafka4-kafka-python-as-{each}"
        for each in ("2.1", "2.4", "2.7", "3.1", "3.6", "4.0", "4.3")
    ),
    "kafka4-librdkafka-acks",
    "kafka4-librdkafka-admin",
    "kafka4-librdkafka-assigned",
    "kafka4-librdkafka-fenced",
    "kafka4-librdkafka-group",
    "kafka4-librdkafka-group-848",
    "kafka4-librdkafka-group-cooperative",
    "kafka4-librdkafka-shapes",
    "kafka4-leader-change",
    "kafka4-librdkafka-transactions",
    "kafka4-three-nodes",
    "librdkafka-acks",
    "librdkafka-admin-mock",
    "librdkafka-consume-assigned",
    "librdkafka-group-848",
    "librdkafka-group-cooperative",
    "librdkafka-idempotent",
    "librdkafka-large",
    "librdkafka-produce-codecs",
    "librdkafka-produce-shapes",
    "librdkafka-transactions",
    *(f"kafka4-sweep-{each}" for each in ("data", "transactions", "admin", "sasl", "too-new")),
    *(
        f"kafka39-sweep-{each}"
        for each in ("data", "groups", "transactions", "admin", "sasl", "too-new")
    ),
    "kafka40-sweep-share",
    "kafka44-sweep-new",
)

OTHER_LANGUAGES = (
    "kafka39-connect",
    "kafka39-franz-go",
    "kafka39-java-admin",
    "kafka39-java-clients",
    "kafka39-kafka-go",
    "kafka39-kafkajs",
    "kafka39-sarama",
    "kafka39-sweep-clients-1",
    "kafka39-sweep-clients-2",
    "kafka39-sweep-clients-3",
    "kafka39-streams",
    "kafka4-connect",
    "kafka4-franz-go",
    "kafka4-franz-go-tls12",
    "kafka4-java-admin",
    "kafka4-java-clients",
    "kafka4-java-share-group",
    "kafka4-java-tls12",
    "kafka4-java-tls13",
    "kafka4-java-tools",
    "kafka4-kafka-go",
    "kafka4-kafkajs",
    "kafka4-kafkajs-tls",
    "kafka4-sarama",
    "kafka4-sarama-tls",
    "kafka4-streams",
    "kafka4-streams-group",
    "kafka4-sweep-clients-1",
    "kafka4-sweep-clients-2",
    "kafka4-throttled",
    "kafka44-franz-go",
    "kafka44-java-clients",
    "kafka44-java-streams-group",
)
"""Java's with the classes of the broker, from Maven; the others by npm and go."""

NOT_PLAYED = {
    r".*-sweep-(quorum|controllers|zookeeper)": "requests of brokers and controllers, not served",
    r"kafka4-sweep-(share|clients-3)": "among the requests are those of brokers for share states",
    r"kafka4-sweep-groups": "recorded when the play had another name for a group",
    r"kafka4-reassignment": "recorded when the play left the place of its topic to the brokers",
    r".*-quorum": "the play waits until its cluster has lost a node, without a request of a client",
    r"kafka4-librdkafka-tls": "without a key log there is nothing to serve",
}
"""Pattern of scenarios -> why they are not played at their captures."""
