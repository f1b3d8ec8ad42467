"""
Roles of the fields of Kafka's messages, as data: rules by name, and the few exceptions.

The first match decides: the end of the field's path, its type, its entity, its name. Without a
match the role is `plain`: the value means the same to every broker.

Source: the message definitions in Kafka's clients/src/main/resources/common/message.
"""

from __future__ import annotations

ROLE_BY_PATH = {
    "ApiVersions.request.node_id": "broker_id",
    "JoinGroup.response.leader": "member",
    "JoinGroup.request.protocols.metadata": "embedded",
    "JoinGroup.response.members.metadata": "embedded",
    "SyncGroup.request.assignments.assignment": "embedded",
    "SyncGroup.response.assignment": "embedded",
    "ConsumerProtocolSubscription.topics": "topic",
    "StickyUserData.generation": "generation",
    "CooperativeStickyUserData.generation": "generation",
    "ConnectAssignment.leader": "member",
    "ConnectAssignment.error": "error",
    "FindCoordinator.request.key": "coordinator_key",
    "FindCoordinator.response.coordinators.key": "coordinator_key",
    "FindCoordinator.request.coordinator_keys": "coordinator_key",
    "StreamsGroupHeartbeat.request.topology.epoch": "plain",
    "StreamsGroupDescribe.response.groups.topology.epoch": "plain",
    "AssignReplicasToDirs.request.directories.id": "directory",
    "AssignReplicasToDirs.response.directories.id": "directory",
    "AlterReplicaLogDirs.request.dirs.path": "directory",
    "replica_state.replica_epoch": "epoch",
    "ShareGroupHeartbeat.response.assignment.topic_partitions.partitions": "assigned",
    "ShareGroupDescribe.response.groups.members.assignment.topic_partitions.partitions": "assigned",
    "StreamsGroupHeartbeat.response.status.status_detail": "error_message",
    "active_tasks.partitions": "assigned",
    "standby_tasks.partitions": "assigned",
    "warmup_tasks.partitions": "assigned",
    "StreamsGroupHeartbeat.response.partitions_by_user_endpoint.active_partitions.partitions": (
        "assigned"
    ),
    "StreamsGroupHeartbeat.response.partitions_by_user_endpoint.standby_partitions.partitions": (
        "assigned"
    ),
    "CreateTopics.response.topics.replication_factor": "replicas",
    "acls.host": "plain",
    "creations.host": "plain",
    "matching_acls.host": "plain",
    "state_changelog_topics.name": "topic",
    "repartition_source_topics.name": "topic",
    "state_changelog_topics.partitions": "plain",
    "repartition_source_topics.partitions": "plain",
    "copartition_groups.source_topics": "plain",
    "copartition_groups.source_topic_regex": "plain",
    "copartition_groups.repartition_source_topics": "plain",
    "configs.name": "config_name",
    "configs.value": "config_value",
    "synonyms.name": "config_name",
    "synonyms.value": "config_value",
    "topic_configs.key": "config_name",
    "topic_configs.value": "config_value",
    "partition_data.index": "partition",
    "partition_responses.index": "partition",
    "FetchSnapshot.response.topics.partitions.index": "partition",
}
"""End of `Api.kind.path` -> role. Paths in embedded messages begin with the message's own name."""

ROLE_BY_TYPE = {"records": "records"}

ROLE_BY_ENTITY = {
    "topicName": "topic",
    "groupId": "group",
    "brokerId": "broker_id",
    "producerId": "producer_id",
    "transactionalId": "transactional_id",
}

NAMES_BY_ROLE = {
    "broker_id": "leader_id voter_id controller_id replica_id preferred_successors",
    "epoch": (
        "broker_epoch controller_epoch coordinator_epoch partition_epoch previous_broker_epoch "
        "state_epoch zk_version finalized_features_epoch"
    ),
    "host": "host host_name v0_host client_host",
    "port": "port v0_port",
    "rack": "rack rack_id",
    "topic_id": "topic_id",
    "topic_pattern": "subscribed_topic_regex source_topic_regex",
    "partition": "partition partition_index partition_indexes partition_id partitions",
    "leader_epoch": (
        "leader_epoch current_leader_epoch committed_leader_epoch epoch "
        "replica_epoch last_offset_epoch"
    ),
    "fetched_epoch": "last_fetched_epoch",
    "offset": (
        "fetch_offset high_watermark last_stable_offset log_start_offset end_offset first_offset "
        "last_offset base_offset committed_offset offset start_offset log_end_offset "
        "low_watermark current_txn_start_offset old_style_offsets current_metadata_offset"
    ),
    "size": "size partition_size total_bytes usable_bytes lag offset_lag",
    "producer_epoch": "producer_epoch ongoing_txn_producer_epoch v3_and_below_producer_epoch",
    "sequence": "last_sequence",
    "transactional_id_pattern": "transactional_id_pattern",
    "group": "group_id group_ids",
    "group_epoch": "group_epoch assignment_epoch endpoint_information_epoch",
    "member": "member_id",
    "instance": "group_instance_id instance_id",
    "generation": "generation_id generation_id_or_member_epoch",
    "member_epoch": "member_epoch",
    "session_id": "session_id",
    "session_epoch": "session_epoch share_session_epoch",
    "timestamp": (
        "timestamp commit_timestamp expiry_timestamp expiry_timestamp_ms "
        "issue_timestamp issue_timestamp_ms max_timestamp max_timestamp_ms last_fetch_timestamp "
        "last_caught_up_timestamp last_timestamp transaction_start_time_ms"
    ),
    "append_time": "log_append_time_ms",
    "throttle": "throttle_time_ms",
    "embedded": "member_metadata member_assignment",
    "cluster_id": "cluster_id",
    "directory": "log_dir log_dirs offline_log_dirs cordoned_log_dirs",
    "incarnation": "incarnation_id",
    "client_instance": "client_instance_id",
    "subscription": "subscription_id",
    "token": "token_id hmac",
    "kind": "key_type resource_type resource_type_filter",
    "resource": "resource_name resource_name_filter",
    "config_name": "configuration_keys",
}
"""Role -> names of fields."""

ROLE_BY_SUFFIX = {
    "error_code": "error",
    "error_message": "error_message",
    "directory_id": "directory",
}
"""Suffix of a field name -> role."""

KEY_ROLES = (
    ("topic", "topic_id", "partition"),
    ("group",),
    ("transactional_id",),
    ("member",),
    ("kind", "resource"),
    ("coordinator_key",),
    ("config_name",),
    ("broker_id",),
    ("producer_id", "offset"),
    ("directory",),
    ("offset",),
)
"""
Roles that identify the elements of an array without declared key fields: the first entry with a
field of the element.
"""

KEY_NAMES = ("subtopology_id", "user", "mechanism", "batch_index", "key", "entity_type", "log_dir")
"""Fields that identify elements where neither declaration nor role does."""

COMPANION_FIELDS = ("leader", "sink_topic")
"""Fields with the same role as another field beside them; the other one sets the scope."""
