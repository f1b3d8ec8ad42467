"""
Names that are Kafka's own, or its clients': they stay unchanged.

Source: Kafka's Topic.java, ConsumerProtocol.java, assignors, SecurityProtocol.java, Feature.java,
ClientQuotaEntity.java, ResourceType.java, the states of groups and transactions; the names that
clients give in ApiVersions (KIP-511); the topic of Confluent's registry, and of Karapace.
"""

from __future__ import annotations

import re

from dissector.protocol.embedded.secrecy.settings import NON_SECRET_SETTINGS

_NAMES = """
__consumer_offsets __transaction_state __share_group_state __cluster_metadata
__remote_log_metadata kafka-cluster _schemas
"""

_WORDS = """
consumer connect classic share streams sr unknown
range roundrobin RoundRobinAssigner sticky cooperative-sticky uniform simple compatible sessioned
default eager
stream copartition
PLAINTEXT SSL SASL_PLAINTEXT SASL_SSL CONTROLLER BROKER INTERNAL EXTERNAL CLIENT REPLICATION
PLAIN SCRAM-SHA-256 SCRAM-SHA-512 GSSAPI OAUTHBEARER SCRAM
Dead Empty PreparingRebalance CompletingRebalance Stable Assigning Reconciling NotReady Unknown
Ongoing PrepareCommit PrepareAbort CompleteCommit CompleteAbort PrepareEpochFence
metadata.version kraft.version group.version transaction.version eligible.leader.replicas.version
share.version streams.version
user client-id ip User Group
"""

_SOFTWARE = """
apache-kafka-java librdkafka kafka-python aiokafka kafkajs franz-go kgo kafka-go sarama
kafka-clients confluent-kafka-python confluent-kafka-go confluent-kafka-dotnet
confluent-kafka-javascript node-rdkafka rdkafka kafka-native kafkashark
"""

RESOURCE_NAMES = frozenset(_NAMES.split())
WORDS = frozenset(_WORDS.split())
SOFTWARE_NAMES = frozenset(_SOFTWARE.split())
SETTING_NAMES = NON_SECRET_SETTINGS

_VALUE = re.compile(r"-?\d{1,19}(\.\d{1,6})?|true|false|", re.ASCII)
_VALUE_WORDS = """
delete compact compact,delete delete,compact producer uncompressed none gzip snappy lz4 zstd
CreateTime LogAppendTime earliest latest read_committed read_uncommitted PLAINTEXT
"""
_PLAIN_VALUES = frozenset(_VALUE_WORDS.split())

_VERSION = re.compile(
    r"v?\d{1,4}(\.\d{1,5}){0,3}([-.+](rc|RC|beta|alpha|SNAPSHOT)?\d{0,3})?(-rdkafka-\d[\d.]{0,9})?",
    re.ASCII,
)


def is_plain_value(value: str) -> bool:
    """Return whether a setting's value is a number, a truth value or one of Kafka's words."""
    return value in _PLAIN_VALUES or _VALUE.fullmatch(value) is not None


def is_version(text: str) -> bool:
    """Return whether a text is the version of a program."""
    return _VERSION.fullmatch(text) is not None
