"""Scenarios of the corpus, recorded on a fresh cluster and replayed at another."""

from __future__ import annotations

import ssl

from cluster.client.auth import Security
from replay.order.exclusion_policy import SENT_BY_BROKERS
from replay.plan.builder import TO_CONTROLLER
from tests.broker.kafka_cluster import Cluster
from tests.broker.replay.lines import Case, Line, Part
from tests.broker.replay.support.substitute_scenes import (
    client_transaction_versions,
    new_client_transaction_versions,
)
from tests.broker.server_properties import PASSWORD, USER, Shape
from tools.record.scenarios.inside import THREE_4, THREE_39
from tools.record.scenarios.kafka_python_versions import AGAINST_4, AGAINST_39, Version
from tools.record.scenarios.sweep import SWEEP_40

KEEPS_ALL = (("log.retention.ms", "-1"),)
"""Sweeps write records that are older than brokers keep them."""

AT_ONCE = (
    ("group.consumer.assignment.interval.ms", "0"),
    ("group.share.assignment.interval.ms", "0"),
    ("group.streams.assignment.interval.ms", "0"),
    ("group.streams.initial.rebalance.delay.ms", "0"),
)
"""Else time decides which heartbeat of a sweep gets the assignment."""

ALL_VERSIONS = (
    ("unstable.api.versions.enable", "true"),
    ("unstable.feature.versions.enable", "true"),
)

SNAPSHOTS = (("metadata.log.max.record.bytes.between.snapshots", "1000"),)
"""Soon a snapshot to fetch."""

FOR_SWEEPS = ALL_VERSIONS + KEEPS_ALL + AT_ONCE + SNAPSHOTS

PLAIN_4 = Shape("4.x", properties=KEEPS_ALL)
PLAIN_39 = Shape("3.9.x", properties=KEEPS_ALL)
SECURE_4 = Shape("4.x", sasl=True, tls=True, properties=FOR_SWEEPS)
SECURE_39 = Shape("3.9.x", sasl=True, tls=True, properties=FOR_SWEEPS)

ANSWERED = "status != unanswered"
"""Versions that a broker does not take it does not answer; a replay asks in others."""

LOGS_IN = "belongs to the authentication of the captured client"
NO_REQUEST = "is no Kafka request"
TOO_NEW = (
    r"can not be decoded: version \d+ of ApiVersions is not known.*"
    r"|version \d+ of ApiVersions is unknown, so it is not sent"
)
INSIDE = f"{SENT_BY_BROKERS}|{TO_CONTROLLER}|{LOGS_IN}"

JUST_SET = {
    "DescribeAcls.resources[*]",
    "DescribeClientQuotas.entries[*]",
    "DescribeConfigs.results[*].configs[*].config_source",
    "DescribeConfigs.results[*].configs[*].synonyms[*]",
    "DescribeConfigs.results[*].configs[*].value",
    "DescribeTopicPartitions.topics[*].partitions[*]",
    "DescribeUserScramCredentials.results[*].error_code",
    "ListConfigResources.config_resources[*]",
    "Metadata.topics[*].partitions[*]",
}
"""
What may be noise where a client asks for what it has just set: the captured broker may not have
known of it yet, and a replay waits until the target does.
"""


def logged_in(target: Cluster) -> Security:
    return Security(mechanism="SCRAM-SHA-256", username=USER, password=PASSWORD)


def encrypted(target: Cluster) -> Security:
    return Security(ssl.create_default_context(cafile=str(target.certificate)))


def without_answers(name: str, topic: str = "orders") -> Case:
    """With acks = 0, a broker loses records without an error while the topic is created."""
    return Case(name, creates=(f"{name}.{topic}",))


def kafka_python(prefix: str, releases: tuple[Version, ...]) -> tuple[Case, ...]:
    names = (".".join(map(str, each)) for each in releases)
    return tuple(Case(f"{prefix}-kafka-python-as-{each}", learns=True) for each in names)


def frameworks(prefix: str) -> tuple[Case, ...]:
    """Return a scenario with concurrent producers and consumers, and requests for log ends."""
    names = ("connect", "streams", "aiokafka-copies", "sarama", "kafka-go")
    return tuple(Case(f"{prefix}-{name}") for name in names)


def java_sweeps(prefix: str) -> tuple[Case, ...]:
    """Send requests encoded by Kafka's own classes, and leave open groups."""
    sweep = f"{prefix}-sweep"
    return (
        Case(f"{sweep}-clients-1", begins="sweep", rests=True, leaves_out=SENT_BY_BROKERS),
        Case(f"{sweep}-clients-2", begins="sweep", rests=True, leaves_out=LOGS_IN),
        Case(
            f"{sweep}-clients-3",
            begins="sweep",
            rests=True,
            leaves_out=f"{LOGS_IN}|{SENT_BY_BROKERS}",
            refuses="the capture does not show where producer 0 got its id",
        ),
        # Its changes of the topic `sweep` are sent to a controller, and omitted.
        Case(f"{sweep}-controllers", leaves_out=INSIDE),
    )


def sweeps(prefix: str) -> tuple[Case, ...]:
    """Send every version for the clients' listeners and for the controllers'."""
    sweep = f"{prefix}-sweep"
    return (
        Case(
            f"{sweep}-admin",
            begins="sweep.admin",
            learns=True,
            leaves_out=f"{LOGS_IN}|is telemetry",
        ),
        Case(
            f"{sweep}-data",
            begins="sweep",
            parts=(Part(ANSWERED),),
            refuses="the capture has no name for topic id .*",
        ),
        Case(f"{sweep}-too-new", leaves_out=TOO_NEW),
        Case(f"{sweep}-transactions", begins="sweep.transaction", play=client_transaction_versions),
        Case(f"{sweep}-groups", begins="sweep"),
        Case(
            f"{sweep}-sasl",
            parts=(Part(secure=logged_in),),
            leaves_out=f"{LOGS_IN}|{NO_REQUEST}",
        ),
        Case(f"{sweep}-quorum", begins="sweep.quorum", leaves_out=INSIDE),
    )


DECRYPTED = (
    Case("kafka4-java-tls12", parts=(Part(secure=encrypted),)),
    Case("kafka4-java-tls13", parts=(Part(secure=encrypted),)),
    Case("kafka4-aiokafka-tls", parts=(Part(secure=encrypted),)),
    Case("kafka4-franz-go-tls12"),
    Case("kafka4-sarama-tls"),
    Case("kafka4-kafkajs-tls"),
    Case("kafka4-kafka-python-resumption"),
    Case("kafka4-kafka-python-tls", leaves_out=LOGS_IN),
)
"""Recorded over TLS with a key log."""


LINES: tuple[Line, ...] = (
    (
        PLAIN_4,
        (
            # First, as they list all groups: no members of others have expired yet.
            Case("kafka4-java-tools", rests=True),
            Case("kafka4-java-admin", learns=True, leaves_out=SENT_BY_BROKERS),
            Case("kafka4-java-clients"),
            Case("kafka4-java-share-group"),
            Case("kafka44-java-clients"),
            Case("kafka44-java-streams-group"),
        ),
    ),
    (
        PLAIN_4,
        (
            # First, as it requests all topics: no others exist yet.
            without_answers("kafka4-kafkajs"),
            Case("kafka4-librdkafka-codecs"),
            Case("kafka4-librdkafka-shapes"),
            without_answers("kafka4-librdkafka-acks"),
            Case("kafka4-librdkafka-assigned"),
            Case("kafka4-librdkafka-group"),
            Case("kafka4-librdkafka-group-cooperative"),
            Case("kafka4-librdkafka-group-848"),
            Case("kafka4-librdkafka-transactions"),
            Case("kafka4-librdkafka-fenced"),
            without_answers("kafka4-aiokafka-codecs"),
            Case("kafka4-aiokafka-transactions"),
            Case("kafka4-aiokafka-group"),
            Case("kafka4-errors"),
            Case("kafka4-librdkafka-admin", learns=True),
            *java_sweeps("kafka4"),
        ),
    ),
    (
        PLAIN_39,
        (
            without_answers("kafka39-kafkajs"),
            Case("kafka39-librdkafka-idempotent"),
            Case("kafka39-librdkafka-group"),
            Case("kafka39-librdkafka-transactions"),
            Case("kafka39-librdkafka-fenced"),
            without_answers("kafka39-aiokafka-codecs"),
            Case("kafka39-librdkafka-admin", learns=True),
            Case("kafka39-java-admin", learns=True, leaves_out=SENT_BY_BROKERS),
            Case("kafka39-java-clients"),
            Case("kafka39-franz-go"),
            Case("kafka39-static-members", speed=1),
            *java_sweeps("kafka39"),
        ),
    ),
    (PLAIN_4, (*frameworks("kafka4"), Case("kafka4-streams-group"))),
    (PLAIN_39, frameworks("kafka39")),
    (PLAIN_39, kafka_python("kafka39", AGAINST_39)),
    (
        THREE_4,
        (
            without_answers("demo", "metrics"),
            Case("kafka4-three-nodes", leaves_out=INSIDE),
            # The end of a reassignment depends on timing only.
            Case("kafka4-reassignment", speed=1, leaves_out=INSIDE),
            Case("kafka4-leader-change"),
            Case("kafka4-quorum", leaves_out=INSIDE),
        ),
    ),
    (
        SECURE_4,
        (
            *sweeps("kafka4"),
            Case(
                "kafka4-librdkafka-sasl",
                parts=(
                    Part(),
                    Part(secure=logged_in, prefix="sasl-"),
                    Part(secure=encrypted, prefix="tls-"),
                ),
                leaves_out=LOGS_IN,
            ),
            Case("kafka4-sweep-share", begins="sweep.share", leaves_out=SENT_BY_BROKERS),
            Case("kafka44-sweep-new", begins="sweep", play=new_client_transaction_versions),
            Case(
                "kafka4-denied",
                parts=(Part('client_id == "admin"'), Part('client_id != "admin"', logged_in)),
                leaves_out=LOGS_IN,
            ),
        ),
    ),
    (SECURE_4, DECRYPTED),
    (
        PLAIN_4,
        (
            *kafka_python("kafka4", AGAINST_4),
            Case("kafka4-throttled"),
            Case("kafka4-franz-go"),
            Case("kafka44-franz-go"),
            # The end of a member's session depends on timing only.
            Case("kafka4-static-members", speed=1),
        ),
    ),
    (
        THREE_39,
        (
            Case("kafka39-three-nodes", leaves_out=INSIDE),
            Case("kafka39-quorum", leaves_out=INSIDE),
        ),
    ),
    (
        SECURE_39,
        (
            *sweeps("kafka39"),
            Case(
                "kafka39-kafka-python-sasl",
                parts=(Part(secure=logged_in),),
                leaves_out=f"{LOGS_IN}|{NO_REQUEST}",
            ),
        ),
    ),
    (SWEEP_40, (Case("kafka40-sweep-share", begins="sweep.share"),)),
)
"""Those that take longest come first: a few are played side by side."""

CASES = {case.name: (shape, case) for shape, cases in LINES for case in cases}

NOT_PLAYED = {
    "kafka4-librdkafka-tls": "what its clients say is encrypted, and there is no key log",
    "kafka39-sweep-zookeeper": "requests of a controller to a ZooKeeper broker",
}
"""Scenario -> why nothing of it that asks for anything is sent to any target."""
