"""
Roles of the fields of Kafka's messages, as data: rules by path, entity and name.

The first match decides: the end of the field's path, its entity, its name. Each field of text,
bytes, records or ids must have a match (a test sees to it); one without becomes filler.

Source: the message definitions in Kafka's clients/src/main/resources/common/message and those of
the coordinators' and KRaft's records.
"""

from __future__ import annotations

from dissector.redaction.messages.field_role import Role

ROLE_BY_PATH = {
    "listeners.name": Role.WORD,
    "endpoints.name": Role.WORD,
    "end_points.name": Role.WORD,
    "leader_endpoints.name": Role.WORD,
    "features.name": Role.WORD,
    "finalized_features.name": Role.WORD,
    "supported_features.name": Role.WORD,
    "FeatureLevelRecord.name": Role.WORD,
    "protocols.name": Role.WORD,
    "supported_protocols.name": Role.WORD,
    "protocols.metadata": Role.EMBEDDED,
    "supported_protocols.metadata": Role.EMBEDDED,
    "members.metadata": Role.EMBEDDED,
    "configs.name": Role.SETTING,
    "configs.value": Role.CONFIG,
    "synonyms.name": Role.SETTING,
    "synonyms.value": Role.CONFIG,
    "ConfigRecord.name": Role.SETTING,
    "ConfigRecord.value": Role.CONFIG,
    "topic_configs.key": Role.SETTING,
    "topic_configs.value": Role.CONFIG,
    "last_assignment_configs.key": Role.SETTING,
    "last_assignment_configs.value": Role.CONFIG,
    "client_tags.key": Role.RACK,
    "client_tags.value": Role.RACK,
    "ops.key": Role.SETTING,
    "ClientQuotaRecord.key": Role.SETTING,
    "entries.values.key": Role.SETTING,
    "FindCoordinator.request.key": Role.COORDINATOR_KEY,
    "coordinators.key": Role.COORDINATOR_KEY,
    "FindCoordinator.request.coordinator_keys": Role.COORDINATOR_KEY,
    "deletions.name": Role.PRINCIPAL,
    "upsertions.name": Role.PRINCIPAL,
    "DescribeUserScramCredentials.request.users.name": Role.PRINCIPAL,
    "UserScramCredentialRecord.name": Role.PRINCIPAL,
    "RemoveUserScramCredentialRecord.name": Role.PRINCIPAL,
    "DefaultPrincipalData.name": Role.PRINCIPAL,
    "DefaultPrincipalData.type": Role.WORD,
    "BeginTransactionRecord.name": Role.ERROR_TEXT,
    "topic_id_partition.name": Role.TOPIC,
    "repartition_source_topics.name": Role.TOPIC,
    "state_changelog_topics.name": Role.TOPIC,
    "processor.name": Role.SUBTOPOLOGY,
    "source.name": Role.SUBTOPOLOGY,
    "nodes.name": Role.SUBTOPOLOGY,
    "StickyUserData.previous_assignment.topic": Role.TOPIC,
    "partitions.metadata": Role.METADATA,
    "OffsetCommitValue.metadata": Role.METADATA,
    "ConnectWorkerMetadata.url": Role.ERROR_TEXT,
    "DelegationTokenRecord.owner": Role.PRINCIPAL,
}
"""End of `Api.kind.path`; paths in embedded messages begin with the message's own name."""

ROLE_BY_ENTITY = {
    "topicName": Role.TOPIC,
    "groupId": Role.GROUP,
    "producerId": Role.PRODUCER_ID,
    "transactionalId": Role.TRANSACTIONAL_ID,
}

_NAMES_BY_ROLE = {
    Role.TOPIC: (
        "topic topics topic_name topic_names sink_topic source_topics repartition_sink_topics "
        "subscribed_topic_names"
    ),
    Role.GROUP: "group group_id group_ids groups groups_names",
    Role.MEMBER: "member_id leader process_id",
    Role.CLIENT_ID: "client_id",
    Role.TRANSACTIONAL_ID: ("transactional_id transactional_ids v3_and_below_transactional_id"),
    Role.INSTANCE: "instance_id group_instance_id",
    Role.HOST: "host host_name v0_host client_host host_filter",
    Role.RACK: "rack rack_id racks",
    Role.PRINCIPAL: (
        "principal principal_name principal_filter owner_principal_name "
        "token_requester_principal_name renewers requester user token_id entity_name match"
    ),
    Role.RESOURCE: "resource_name resource_name_filter connector",
    Role.DIRECTORY: "log_dir path",
    Role.CLUSTER_ID: "cluster_id",
    Role.ID: (
        "topic_id id directories log_dirs offline_log_dirs cordoned_log_dirs incarnation_id "
        "client_instance_id segment_id voter_directory_id replica_directory_id "
        "candidate_directory_id"
    ),
    Role.PRODUCER_ID: "producer_id next_producer_id previous_producer_id producer_id_start",
    Role.ERROR_TEXT: (
        "error_message batch_index_error_message acknowledge_error_message reason status_detail "
        "documentation leader_url"
    ),
    Role.REGEX: (
        "subscribed_topic_regex source_topic_regex regular_expression transactional_id_pattern"
    ),
    Role.SUBTOPOLOGY: "subtopology_id stores successors",
    Role.METADATA: "committed_metadata",
    Role.WORD: (
        "assignor_name server_assignor protocol protocol_data protocol_name protocol_type "
        "group_state group_type state_filters states_filter types_filter unknown_state_filters "
        "transaction_state feature mechanism mechanisms listener entity_type "
        "principal_type owner_principal_type token_requester_principal_type "
        "requested_metrics"
    ),
    Role.SETTING: "configuration_keys",
    Role.SOFTWARE: "client_software_name client_software_version",
    Role.SECRET: "salt salted_password server_key stored_key hmac",
    Role.OPAQUE: "metrics user_data custom_metadata allocation",
    Role.EMBEDDED: (
        "assignment member_assignment member_metadata subscription auth_bytes request_data "
        "request_principal client_host_address response_data"
    ),
    Role.RECORDS: "records unaligned_records",
}

ROLE_BY_NAME = {name: role for role, names in _NAMES_BY_ROLE.items() for name in names.split()}
