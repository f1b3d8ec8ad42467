"""
The meaning of the fields of Kafka's messages, as data: to brokers, to readers, and as a secret.

Replay, serve, redaction, facts and masking ask this table. The first match decides: the end of the
field's path, its entity, its name, the end of its name. Each declared field must have a match (a
test sees to it). A field that only a user's definition declares may have none: then its value is
the same for every broker, and a redaction fills it.

Source: the message definitions in Kafka's clients/src/main/resources/common/message, and those of
the coordinators' and KRaft's records.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple, Protocol

from dissector.protocol.field_roles import Role, ValueKind


class Meaning(NamedTuple):
    """
    What a field holds.

    Attributes:
        role: To brokers; errors, topics and topic ids are also what readers look for.
        kind: In a redaction; None for numbers, which stay.
        fields: Names of fields with types of the kind (of numbers without one), ends of paths
            (`configs.name`) and ends of names (`*error_code`). Paths begin with API and kind, or
            with the name of an embedded message or record: `Fetch.request.topics`.
        is_secret: Whether it is masked in every output unless secrets are requested.
    """

    role: Role
    kind: ValueKind | None
    fields: str = ""
    is_secret: bool = False


class Declared(Protocol):
    """What the table reads of a declared field."""

    @property
    def name(self) -> str:
        """Kafka's name in snake_case."""

    @property
    def type(self) -> str:
        """Kafka's name of the type."""

    @property
    def entity(self) -> str:
        """The entity that Kafka declares; or empty."""


UNKNOWN = Meaning(Role.PLAIN, None)
"""The meaning of a field without a match."""

_BY_ENTITY = {
    "topicName": Meaning(Role.TOPIC, ValueKind.TOPIC),
    "groupId": Meaning(Role.GROUP, ValueKind.GROUP),
    "brokerId": Meaning(Role.BROKER_ID, None),
    "producerId": Meaning(Role.PRODUCER_ID, ValueKind.PRODUCER_ID),
    "transactionalId": Meaning(Role.TRANSACTIONAL_ID, ValueKind.TRANSACTIONAL_ID),
}

_ASSIGNED = (
    "active_tasks.partitions standby_tasks.partitions warmup_tasks.partitions "
    "ShareGroupHeartbeat.response.assignment.topic_partitions.partitions "
    "ShareGroupDescribe.response.groups.members.assignment.topic_partitions.partitions "
    "StreamsGroupHeartbeat.response.partitions_by_user_endpoint.active_partitions.partitions "
    "StreamsGroupHeartbeat.response.partitions_by_user_endpoint.standby_partitions.partitions"
)
_OFFSETS = (
    "fetch_offset high_watermark last_stable_offset log_start_offset end_offset first_offset "
    "last_offset base_offset committed_offset offset start_offset log_end_offset low_watermark "
    "current_txn_start_offset old_style_offsets current_metadata_offset"
)
_TIMESTAMPS = (
    "timestamp commit_timestamp expiry_timestamp expiry_timestamp_ms issue_timestamp "
    "issue_timestamp_ms max_timestamp max_timestamp_ms last_fetch_timestamp "
    "last_caught_up_timestamp last_timestamp transaction_start_time_ms"
)
_PRINCIPALS = (
    "principal principal_name principal_filter owner_principal_name renewers requester user "
    "token_requester_principal_name entity_name match deletions.name upsertions.name "
    "DescribeUserScramCredentials.request.users.name UserScramCredentialRecord.name "
    "RemoveUserScramCredentialRecord.name DefaultPrincipalData.name DelegationTokenRecord.owner"
)
_WORDS = (
    "assignor_name server_assignor protocol protocol_data protocol_name protocol_type group_state "
    "group_type state_filters states_filter types_filter unknown_state_filters transaction_state "
    "feature mechanism mechanisms listener entity_type principal_type owner_principal_type "
    "token_requester_principal_type requested_metrics listeners.name endpoints.name "
    "end_points.name leader_endpoints.name features.name finalized_features.name "
    "supported_features.name FeatureLevelRecord.name protocols.name supported_protocols.name "
    "DefaultPrincipalData.type"
)
_COUNTS = (
    "count iterations position num_partitions replication_factor delivery_count "
    "delivery_complete_count batch_size batch_index config_offset acceptable_recovery_lag "
    "acceptable_recovery_lag_legacy segment_size_in_bytes producer_id_len metadata_hash "
    "state_changelog_topics.partitions repartition_source_topics.partitions source_topics "
    "source_topic_regex repartition_source_topics tasks"
)
_LIMITS = (
    "min_bytes max_bytes max_records max_num_offsets partition_max_bytes telemetry_max_bytes "
    "response_partition_limit"
)
_DURATIONS = (
    "timeout_ms max_wait_ms session_timeout session_timeout_ms rebalance_timeout "
    "rebalance_timeout_ms transaction_timeout_ms retention_time_ms heartbeat_interval_ms "
    "task_offset_interval_ms push_interval_ms acquisition_lock_timeout_ms session_lifetime_ms "
    "max_lifetime_ms renew_period_ms expiry_time_period_ms duration_filter"
)
_TIMES_IN_RECORDS = (
    "create_timestamp write_timestamp assignment_timestamp current_state_timestamp "
    "event_timestamp_ms expire_timestamp expiration_timestamp last_contained_log_timestamp "
    "transaction_start_timestamp_ms transaction_last_update_timestamp_ms"
)
_EPOCHS_OF_STATES = (
    "assignment_epochs previous_member_epoch snapshot_epoch next_producer_epoch topology_epoch "
    "validated_topology_epoch failed_description_topology_epoch stored_description_topology_epoch "
    "generation topology.epoch StreamsGroupTopologyValue.epoch"
)
_VERSIONS = (
    "api_key request_api_key request_api_version correlation_id version type min_version "
    "max_version min_supported_version max_supported_version min_version_level max_version_level "
    "feature_level k_raft_version client_transaction_version transaction_version"
)
_CODES = (
    "acks isolation_level operation acknowledge_types delivery_state delta_temporality "
    "accepted_compression_types compression_type config_operation config_source config_type "
    "source election_type endpoint_type leader_recovery_state match_type mechanism member_type "
    "node_type pattern_type pattern_type_filter resource_pattern_type permission_type "
    "resource_types security_protocol share_acquire_mode state status_code upgrade_type "
    "topology_description_status transaction_status transaction_result fenced "
    "zk_migration_state remote_log_segment_state remote_partition_delete_state "
    "authorized_operations cluster_authorized_operations topic_authorized_operations value"
)
_FLAGS = (
    "ack_when_committed allow_auto_topic_creation allow_downgrade allow_replication_factor_change "
    "committed delete_partition delete_partitions enable2_pc in_controlled_shutdown "
    "include_authorized_operations include_cluster_authorized_operations include_documentation "
    "include_fenced_brokers include_synonyms include_topic_authorized_operations "
    "include_topology_description is_caught_up is_classic is_cordoned is_default is_fenced "
    "is_future_key is_internal is_k_raft_controller is_migrating_zk_broker is_new is_renew_ack "
    "is_sensitive keep_prepared_txn pre_vote read_only remove require_stable "
    "should_shut_down shutdown_application skip_assignment strict terminating "
    "token_authenticated topology_description_required txn_index_empty validate_only verify_only "
    "vote_granted want_fence want_shut_down zk_migration_ready"
)

MEANINGS = (
    # Brokers, and what each cluster has of its own.
    Meaning(
        Role.BROKER_ID,
        None,
        "leader_id voter_id controller_id replica_id preferred_successors broker_id isr "
        "ApiVersions.request.node_id",
    ),
    Meaning(
        Role.EPOCH,
        None,
        "broker_epoch controller_epoch coordinator_epoch partition_epoch previous_broker_epoch "
        "state_epoch zk_version finalized_features_epoch replica_state.replica_epoch",
    ),
    Meaning(Role.HOST, ValueKind.HOST, "host host_name v0_host client_host"),
    Meaning(Role.PLAIN, ValueKind.HOST, "host_filter acls.host creations.host matching_acls.host"),
    Meaning(Role.PORT, None, "port v0_port"),
    Meaning(Role.RACK, ValueKind.RACK, "rack rack_id"),
    Meaning(Role.PLAIN, ValueKind.RACK, "racks client_tags.key client_tags.value"),
    Meaning(Role.CLUSTER_ID, ValueKind.CLUSTER_ID, "cluster_id"),
    Meaning(Role.DIRECTORY, ValueKind.DIRECTORY, "log_dir path"),
    Meaning(
        Role.DIRECTORY,
        ValueKind.ID,
        "log_dirs offline_log_dirs cordoned_log_dirs directories directories.id *directory_id",
    ),
    Meaning(Role.INCARNATION, ValueKind.ID, "incarnation_id"),
    # Topics and their partitions.
    Meaning(
        Role.TOPIC,
        ValueKind.TOPIC,
        "topic topics topic_name topic_names sink_topic source_topics repartition_sink_topics "
        "subscribed_topic_names topic_id_partition.name state_changelog_topics.name "
        "repartition_source_topics.name",
    ),
    Meaning(Role.TOPIC_ID, ValueKind.ID, "topic_id topic_id_partition.id"),
    Meaning(Role.TOPIC_PATTERN, ValueKind.REGEX, "subscribed_topic_regex source_topic_regex"),
    Meaning(Role.PLAIN, ValueKind.REGEX, "regular_expression"),
    Meaning(
        Role.PARTITION,
        None,
        "partition partition_index partition_indexes partition_id partition_ids partitions "
        "partition_data.index partition_responses.index "
        "FetchSnapshot.response.topics.partitions.index",
    ),
    Meaning(Role.ASSIGNED, None, _ASSIGNED),
    Meaning(Role.REPLICAS, None, "CreateTopics.response.topics.replication_factor"),
    Meaning(
        Role.LEADER_EPOCH,
        None,
        "leader_epoch current_leader_epoch committed_leader_epoch epoch replica_epoch "
        "last_offset_epoch",
    ),
    Meaning(Role.FETCHED_EPOCH, None, "last_fetched_epoch"),
    Meaning(Role.OFFSET, None, _OFFSETS),
    Meaning(Role.SIZE, None, "size partition_size total_bytes usable_bytes lag offset_lag"),
    Meaning(Role.RECORDS, ValueKind.RECORDS, "records unaligned_records"),
    Meaning(Role.PLAIN, ValueKind.OPAQUE, "custom_metadata"),
    # Producers.
    Meaning(
        Role.PRODUCER_ID,
        ValueKind.PRODUCER_ID,
        "producer_id next_producer_id previous_producer_id producer_id_start",
    ),
    Meaning(
        Role.PRODUCER_EPOCH,
        None,
        "producer_epoch ongoing_txn_producer_epoch v3_and_below_producer_epoch",
    ),
    Meaning(Role.SEQUENCE, None, "last_sequence"),
    Meaning(Role.TRANSACTIONAL_ID, ValueKind.TRANSACTIONAL_ID, "transactional_id"),
    Meaning(Role.TRANSACTIONAL_ID_PATTERN, ValueKind.REGEX, "transactional_id_pattern"),
    # Groups.
    Meaning(Role.GROUP, ValueKind.GROUP, "group group_id group_ids groups groups_names"),
    Meaning(Role.GROUP_EPOCH, None, "group_epoch assignment_epoch endpoint_information_epoch"),
    Meaning(Role.MEMBER, ValueKind.MEMBER, "member_id leader"),
    Meaning(Role.PLAIN, ValueKind.MEMBER, "process_id"),
    Meaning(Role.INSTANCE, ValueKind.INSTANCE, "group_instance_id instance_id"),
    Meaning(
        Role.GENERATION,
        None,
        "generation_id generation_id_or_member_epoch StickyUserData.generation "
        "CooperativeStickyUserData.generation",
    ),
    Meaning(Role.MEMBER_EPOCH, None, "member_epoch"),
    Meaning(
        Role.EMBEDDED,
        ValueKind.EMBEDDED,
        "member_metadata member_assignment assignment subscription protocols.metadata "
        "supported_protocols.metadata members.metadata",
    ),
    Meaning(Role.PLAIN, ValueKind.OPAQUE, "user_data allocation"),
    Meaning(
        Role.PLAIN,
        ValueKind.METADATA,
        "committed_metadata partitions.metadata OffsetCommitValue.metadata",
    ),
    Meaning(
        Role.PLAIN,
        ValueKind.SUBTOPOLOGY,
        "subtopology_id stores successors processor.name source.name nodes.name",
    ),
    Meaning(
        Role.COORDINATOR_KEY,
        ValueKind.COORDINATOR_KEY,
        "FindCoordinator.request.key coordinators.key FindCoordinator.request.coordinator_keys",
    ),
    # Sessions, times and results.
    Meaning(Role.SESSION_ID, None, "session_id"),
    Meaning(Role.SESSION_EPOCH, None, "session_epoch share_session_epoch"),
    Meaning(Role.TIMESTAMP, None, _TIMESTAMPS),
    Meaning(Role.APPEND_TIME, None, "log_append_time_ms"),
    Meaning(Role.THROTTLE, None, "throttle_time_ms"),
    Meaning(Role.ERROR, None, "*error_code ConnectAssignment.error"),
    Meaning(
        Role.ERROR_MESSAGE,
        ValueKind.ERROR_TEXT,
        "*error_message StreamsGroupHeartbeat.response.status.status_detail",
    ),
    Meaning(
        Role.PLAIN,
        ValueKind.ERROR_TEXT,
        "reason status_detail documentation leader_url ConnectWorkerMetadata.url "
        "BeginTransactionRecord.name",
    ),
    # Clients, logins and settings.
    Meaning(Role.PLAIN, ValueKind.CLIENT_ID, "client_id"),
    Meaning(Role.PLAIN, ValueKind.SOFTWARE, "client_software_name client_software_version"),
    Meaning(Role.CLIENT_INSTANCE, ValueKind.ID, "client_instance_id"),
    Meaning(Role.SUBSCRIPTION, None, "subscription_id"),
    Meaning(Role.PLAIN, ValueKind.OPAQUE, "metrics", is_secret=True),
    Meaning(Role.TOKEN, ValueKind.PRINCIPAL, "token_id"),
    Meaning(Role.TOKEN, ValueKind.SECRET, "hmac", is_secret=True),
    Meaning(
        Role.PLAIN,
        ValueKind.SECRET,
        "salt salted_password server_key stored_key",
        is_secret=True,
    ),
    Meaning(Role.PLAIN, ValueKind.EMBEDDED, "auth_bytes", is_secret=True),
    Meaning(
        Role.PLAIN,
        ValueKind.EMBEDDED,
        "request_data request_principal client_host_address response_data",
    ),
    Meaning(Role.PLAIN, ValueKind.PRINCIPAL, _PRINCIPALS),
    Meaning(Role.KIND, None, "key_type resource_type resource_type_filter"),
    Meaning(Role.RESOURCE, ValueKind.RESOURCE, "resource_name resource_name_filter"),
    Meaning(Role.PLAIN, ValueKind.RESOURCE, "connector"),
    Meaning(
        Role.CONFIG_NAME,
        ValueKind.SETTING,
        "configuration_keys configs.name synonyms.name ConfigRecord.name topic_configs.key "
        "last_assignment_configs.key",
    ),
    Meaning(
        Role.CONFIG_VALUE,
        ValueKind.CONFIG,
        "configs.value synonyms.value ConfigRecord.value topic_configs.value "
        "last_assignment_configs.value",
    ),
    Meaning(Role.PLAIN, ValueKind.SETTING, "ops.key ClientQuotaRecord.key entries.values.key"),
    # The same to every broker, and no secret of anyone.
    Meaning(Role.PLAIN, ValueKind.WORD, _WORDS),
    Meaning(Role.PLAIN, ValueKind.ID, "id segment_id"),
    *(
        Meaning(Role.PLAIN, None, fields)
        for fields in (
            *(_COUNTS, _LIMITS, _DURATIONS, _TIMES_IN_RECORDS),
            *(_EPOCHS_OF_STATES, _VERSIONS, _CODES, _FLAGS),
        )
    ),
)

_OTHER_CONTENT = ("string", "bytes", "uuid", "records", "struct")
"""Types of fields without a number."""

_CONTENT: dict[ValueKind | None, str] = {
    None: "number",
    ValueKind.PRODUCER_ID: "number",
    ValueKind.ID: "uuid",
    ValueKind.RECORDS: "records",
    **dict.fromkeys((ValueKind.SECRET, ValueKind.OPAQUE, ValueKind.EMBEDDED), "bytes"),
}
"""Kind -> the content of the fields that have it by their names; other kinds are strings."""


def _entries() -> Iterator[tuple[str, str, Meaning]]:
    for meaning in MEANINGS:
        content = _CONTENT.get(meaning.kind, "string")
        yield from ((content, word, meaning) for word in meaning.fields.split())


_BY_PATH = {word: meaning for _, word, meaning in _entries() if "." in word}
_BY_NAME = {(content, word): meaning for content, word, meaning in _entries() if "." not in word}
_BY_END = {
    (content, word[1:]): meaning for (content, word), meaning in _BY_NAME.items() if word[0] == "*"
}
_SECRET_NAMES = frozenset(name for (_, name), meaning in _BY_NAME.items() if meaning.is_secret)


def meaning_of(field: Declared, path: str = "") -> Meaning:
    """
    Return the meaning of a field without subfields.

    Args:
        field: The field.
        path: From the API and the kind on, or an embedded message's name; without it only the
            field itself decides.
    """
    return _first_match(path, field.entity, field.type, field.name)


@cache
def _first_match(path: str, entity: str, type_name: str, name: str) -> Meaning:
    parts = path.split(".")
    paths = (_BY_PATH.get(".".join(parts[start:])) for start in range(len(parts)))
    found = next(filter(None, paths), None) or _BY_ENTITY.get(entity)
    if found is not None:
        return found
    content = type_name.removeprefix("[]")
    content = content if content in _OTHER_CONTENT else "number"
    ends = (each for (of, end), each in _BY_END.items() if of == content and name.endswith(end))
    return _BY_NAME.get((content, name)) or next(ends, UNKNOWN)


def is_secret_name(name: str) -> bool:
    """Return whether bytes with this name are a secret wherever they are."""
    return name in _SECRET_NAMES
