"""
All APIs of Kafka by key. Each API has a module in one of the sub-packages, imported on first use.

Message definitions (`--schemas`), where given, take precedence over these declarations.

Source: Kafka, clients/src/main/resources/common/message (0.8.0 to 4.4).
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module

from dissector.protocol.api import Api, Kind
from dissector.protocol.context import current, per_schemas

_DECLARATIONS = {
    0: "data.Produce",
    1: "data.Fetch",
    2: "data.ListOffsets",
    3: "data.Metadata",
    4: "cluster.LeaderAndIsr",
    5: "cluster.StopReplica",
    6: "cluster.UpdateMetadata",
    7: "cluster.ControlledShutdown",
    8: "groups.OffsetCommit",
    9: "groups.OffsetFetch",
    10: "groups.FindCoordinator",
    11: "groups.JoinGroup",
    12: "groups.Heartbeat",
    13: "groups.LeaveGroup",
    14: "groups.SyncGroup",
    15: "groups.DescribeGroups",
    16: "groups.ListGroups",
    17: "security.SaslHandshake",
    18: "data.ApiVersions",
    19: "admin.CreateTopics",
    20: "admin.DeleteTopics",
    21: "data.DeleteRecords",
    22: "transactions.InitProducerId",
    23: "data.OffsetForLeaderEpoch",
    24: "transactions.AddPartitionsToTxn",
    25: "transactions.AddOffsetsToTxn",
    26: "transactions.EndTxn",
    27: "transactions.WriteTxnMarkers",
    28: "transactions.TxnOffsetCommit",
    29: "security.DescribeAcls",
    30: "security.CreateAcls",
    31: "security.DeleteAcls",
    32: "admin.DescribeConfigs",
    33: "admin.AlterConfigs",
    34: "admin.AlterReplicaLogDirs",
    35: "admin.DescribeLogDirs",
    36: "security.SaslAuthenticate",
    37: "admin.CreatePartitions",
    38: "security.CreateDelegationToken",
    39: "security.RenewDelegationToken",
    40: "security.ExpireDelegationToken",
    41: "security.DescribeDelegationToken",
    42: "groups.DeleteGroups",
    43: "admin.ElectLeaders",
    44: "admin.IncrementalAlterConfigs",
    45: "admin.AlterPartitionReassignments",
    46: "admin.ListPartitionReassignments",
    47: "groups.OffsetDelete",
    48: "admin.DescribeClientQuotas",
    49: "admin.AlterClientQuotas",
    50: "security.DescribeUserScramCredentials",
    51: "security.AlterUserScramCredentials",
    52: "raft.Vote",
    53: "raft.BeginQuorumEpoch",
    54: "raft.EndQuorumEpoch",
    55: "raft.DescribeQuorum",
    56: "cluster.AlterPartition",
    57: "admin.UpdateFeatures",
    58: "cluster.Envelope",
    59: "raft.FetchSnapshot",
    60: "data.DescribeCluster",
    61: "transactions.DescribeProducers",
    62: "cluster.BrokerRegistration",
    63: "cluster.BrokerHeartbeat",
    64: "cluster.UnregisterBroker",
    65: "transactions.DescribeTransactions",
    66: "transactions.ListTransactions",
    67: "transactions.AllocateProducerIds",
    68: "groups.ConsumerGroupHeartbeat",
    69: "groups.ConsumerGroupDescribe",
    70: "cluster.ControllerRegistration",
    71: "admin.GetTelemetrySubscriptions",
    72: "admin.PushTelemetry",
    73: "cluster.AssignReplicasToDirs",
    74: "admin.ListConfigResources",
    75: "data.DescribeTopicPartitions",
    76: "share_groups.ShareGroupHeartbeat",
    77: "share_groups.ShareGroupDescribe",
    78: "share_groups.ShareFetch",
    79: "share_groups.ShareAcknowledge",
    80: "raft.AddRaftVoter",
    81: "raft.RemoveRaftVoter",
    82: "raft.UpdateRaftVoter",
    83: "share_groups.InitializeShareGroupState",
    84: "share_groups.ReadShareGroupState",
    85: "share_groups.WriteShareGroupState",
    86: "share_groups.DeleteShareGroupState",
    87: "share_groups.ReadShareGroupStateSummary",
    88: "groups.StreamsGroupHeartbeat",
    89: "groups.StreamsGroupDescribe",
    90: "share_groups.DescribeShareGroupOffsets",
    91: "share_groups.AlterShareGroupOffsets",
    92: "share_groups.DeleteShareGroupOffsets",
    93: "groups.StreamsGroupTopologyDescriptionUpdate",
    94: "cluster.UnregisterController",
}
"""API key -> room and name of its declaration, in key order."""

NAMES = {key: place.rpartition(".")[2] for key, place in _DECLARATIONS.items()}
"""API key -> name, in key order."""

KEYS = {name: key for key, name in NAMES.items()}


def module_name(name: str) -> str:
    """Return the name of a message's module: `list_offsets` for `ListOffsets`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def api_module(name: str) -> str:
    """Return the module of an API here: `data.list_offsets`; a new API has no room yet."""
    room = _DECLARATIONS[KEYS[name]].rpartition(".")[0] if name in KEYS else ""
    return f"{room}.{module_name(name)}".removeprefix(".")


@per_schemas
def api(key: int) -> Api | None:
    """Return the API of a key, or None where it is not known."""
    schemas, declared = current(), _declared(key)
    if schemas is None:
        return declared
    from dissector.protocol.definitions.apis import overlay_api

    return overlay_api(schemas, key, declared)


@cache
def _declared(key: int) -> Api | None:
    name = NAMES.get(key)
    if name is None:
        return None
    module = import_module(f"{__name__}.{api_module(name)}")
    return Api(key, name, getattr(module, f"{name}Request"), getattr(module, f"{name}Response"))


def api_name(key: int) -> str:
    """Return the name of a key; `api 999` where it is not known."""
    found = None if current() is None else api(key)
    return (found.name if found else NAMES.get(key)) or f"api {key}"


@per_schemas
def api_keys() -> dict[str, int]:
    """Return the keys of all APIs by their names, in key order."""
    schemas = current()
    if schemas is None:
        return KEYS
    keys = {*NAMES, *schemas.keys("request"), *schemas.keys("response")}
    return {api_name(key): key for key in sorted(keys)}


def source_of(key: int, kind: Kind, version: int) -> str | None:
    """Return the JAR or folder with a message's definition; None: the built-in one does."""
    if current() is None:
        return None
    found = api(key)
    return None if found is None else found.sources.get((kind, version))


def all_apis() -> list[Api]:
    """Load and return every API in key order."""
    return [found for key in api_keys().values() if (found := api(key)) is not None]
