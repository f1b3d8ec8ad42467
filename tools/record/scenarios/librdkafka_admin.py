"""Every admin call of librdkafka, against Apache Kafka."""

from __future__ import annotations

from typing import Any

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    ElectionType,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from tools.record.scenario import KAFKA_4, KAFKA_39, PATIENCE_S, Stage, scenario
from tools.record.scenarios.librdkafka import answers, config
from tools.record.scenarios.librdkafka_groups import consumer, fill, read

_SHOWS = "Every call of librdkafka's admin client: "


@scenario(
    "kafka4-librdkafka-admin",
    _SHOWS + "topics, configs, groups, offsets, ACLs, SCRAM users, elections",
    client="librdkafka",
    cluster=KAFKA_4,
)
@scenario(
    "kafka39-librdkafka-admin",
    _SHOWS + "topics, configs, groups, offsets, ACLs, SCRAM users, elections",
    client="librdkafka",
    cluster=KAFKA_39,
)
def admin_calls(stage: Stage) -> None:
    admin = AdminClient(config(stage))
    _topics(stage, admin)
    _groups(stage, admin)
    _acls(stage, admin)
    _scram(admin)
    answers(admin.delete_topics([stage.topic(), stage.topic("never created")]))


def _topics(stage: Stage, admin: AdminClient) -> None:
    topic = stage.topic()
    answers(admin.create_topics([NewTopic(topic, 1, 1, config={"retention.ms": "600000"})]))
    answers(admin.create_topics([NewTopic(topic, 1, 1), NewTopic("bad name!", 1, 1)]))
    answers(admin.create_topics([NewTopic(stage.topic("dry"), 1, 1)], validate_only=True))
    answers(admin.create_partitions([NewPartitions(topic, 3)]))
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    answers(admin.describe_configs([resource]))
    resource.set_config("cleanup.policy", "compact")
    answers(admin.alter_configs([resource]))
    change = ConfigEntry("segment.bytes", "1048576", incremental_operation=AlterConfigOpType.SET)
    answers(
        admin.incremental_alter_configs(
            [ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[change])]
        )
    )
    answers(admin.describe_cluster(include_authorized_operations=True))
    answers(admin.describe_topics(TopicCollection([topic, "nowhere"])))
    answers(admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition(topic, 0)]))
    fill(stage)
    for spec in (OffsetSpec.earliest(), OffsetSpec.latest(), OffsetSpec.max_timestamp()):
        answers(admin.list_offsets({TopicPartition(topic, 0): spec}))
    answers(admin.delete_records([TopicPartition(topic, 0, -1)]))


def _groups(stage: Stage, admin: AdminClient) -> None:
    topic, group = stage.topic(), stage.topic("group")
    fill(stage)
    reader = consumer(stage, group)
    reader.subscribe([topic])
    read(reader, 1)
    answers(admin.describe_consumer_groups([group, "no such group"]))
    answers(admin.list_consumer_groups())
    answers(admin.delete_consumer_groups([group]))
    reader.close()
    where = [TopicPartition(topic, 0, 1)]
    answers(admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, where)]))
    answers(admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]))
    answers(admin.delete_consumer_groups([group]))


def _acls(stage: Stage, admin: AdminClient) -> None:
    def binding(kind: Any, name: str, operation: Any, permission: Any) -> Any:
        literal = ResourcePatternType.LITERAL
        return kind(ResourceType.TOPIC, name, literal, "User:mallory", "*", operation, permission)

    secret = stage.topic("secret")
    answers(
        admin.create_acls([binding(AclBinding, secret, AclOperation.READ, AclPermissionType.DENY)])
    )
    wanted = binding(AclBindingFilter, secret, AclOperation.ANY, AclPermissionType.ANY)
    answers(admin.describe_acls(wanted))
    answers(admin.delete_acls([wanted]))


def _scram(admin: AdminClient) -> None:
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    user = UserScramCredentialUpsertion("bob", info, b"secret-for-tests")
    answers(admin.alter_user_scram_credentials([user]))
    answers(admin.describe_user_scram_credentials(["bob", "nobody"]))
    gone = UserScramCredentialDeletion("bob", ScramMechanism.SCRAM_SHA_256)
    answers(admin.alter_user_scram_credentials([gone]))
    admin.list_topics(timeout=PATIENCE_S)
