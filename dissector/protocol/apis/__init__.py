"""
Every API of Kafka, by its key; each is declared in a file of its own, loaded when asked for.

Message definitions (`--schemas`) lie over these declarations, where some are in use.

Source: Kafka, clients/src/main/resources/common/message (0.8.0 to 4.4).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Literal

from dissector.protocol.context import current, per_schemas
from dissector.protocol.schema import Schema

Kind = Literal["request", "response"]

NAMES = {
    0: "Produce",
    1: "Fetch",
    2: "ListOffsets",
    3: "Metadata",
    4: "LeaderAndIsr",
    5: "StopReplica",
    6: "UpdateMetadata",
    7: "ControlledShutdown",
    8: "OffsetCommit",
    9: "OffsetFetch",
    10: "FindCoordinator",
    11: "JoinGroup",
    12: "Heartbeat",
    13: "LeaveGroup",
    14: "SyncGroup",
    15: "DescribeGroups",
    16: "ListGroups",
    17: "SaslHandshake",
    18: "ApiVersions",
    19: "CreateTopics",
    20: "DeleteTopics",
    21: "DeleteRecords",
    22: "InitProducerId",
    23: "OffsetForLeaderEpoch",
    24: "AddPartitionsToTxn",
    25: "AddOffsetsToTxn",
    26: "EndTxn",
    27: "WriteTxnMarkers",
    28: "TxnOffsetCommit",
    29: "DescribeAcls",
    30: "CreateAcls",
    31: "DeleteAcls",
    32: "DescribeConfigs",
    33: "AlterConfigs",
    34: "AlterReplicaLogDirs",
    35: "DescribeLogDirs",
    36: "SaslAuthenticate",
    37: "CreatePartitions",
    38: "CreateDelegationToken",
    39: "RenewDelegationToken",
    40: "ExpireDelegationToken",
    41: "DescribeDelegationToken",
    42: "DeleteGroups",
    43: "ElectLeaders",
    44: "IncrementalAlterConfigs",
    45: "AlterPartitionReassignments",
    46: "ListPartitionReassignments",
    47: "OffsetDelete",
    48: "DescribeClientQuotas",
    49: "AlterClientQuotas",
    50: "DescribeUserScramCredentials",
    51: "AlterUserScramCredentials",
    52: "Vote",
    53: "BeginQuorumEpoch",
    54: "EndQuorumEpoch",
    55: "DescribeQuorum",
    56: "AlterPartition",
    57: "UpdateFeatures",
    58: "Envelope",
    59: "FetchSnapshot",
    60: "DescribeCluster",
    61: "DescribeProducers",
    62: "BrokerRegistration",
    63: "BrokerHeartbeat",
    64: "UnregisterBroker",
    65: "DescribeTransactions",
    66: "ListTransactions",
    67: "AllocateProducerIds",
    68: "ConsumerGroupHeartbeat",
    69: "ConsumerGroupDescribe",
    70: "ControllerRegistration",
    71: "GetTelemetrySubscriptions",
    72: "PushTelemetry",
    73: "AssignReplicasToDirs",
    74: "ListConfigResources",
    75: "DescribeTopicPartitions",
    76: "ShareGroupHeartbeat",
    77: "ShareGroupDescribe",
    78: "ShareFetch",
    79: "ShareAcknowledge",
    80: "AddRaftVoter",
    81: "RemoveRaftVoter",
    82: "UpdateRaftVoter",
    83: "InitializeShareGroupState",
    84: "ReadShareGroupState",
    85: "WriteShareGroupState",
    86: "DeleteShareGroupState",
    87: "ReadShareGroupStateSummary",
    88: "StreamsGroupHeartbeat",
    89: "StreamsGroupDescribe",
    90: "DescribeShareGroupOffsets",
    91: "AlterShareGroupOffsets",
    92: "DeleteShareGroupOffsets",
    93: "StreamsGroupTopologyDescriptionUpdate",
    94: "UnregisterController",
}
"""API key -> name, in key order."""

KEYS = {name: key for key, name in NAMES.items()}


@dataclass(frozen=True, slots=True)
class Api:
    """
    One API: its key, its name, and what goes over the wire.

    Attributes:
        key: Its key.
        name: Its name.
        request: The declaration of the request.
        response: Of the response.
        sources: By kind and version, the JAR or folder of a definition that is not built in.
    """

    key: int
    name: str
    request: Schema
    response: Schema
    sources: Mapping[tuple[Kind, int], str] = field(default_factory=dict, hash=False)

    def schema(self, kind: Kind) -> Schema:
        """Return the declaration of the request or the response."""
        return self.request if kind == "request" else self.response


def module_name(name: str) -> str:
    """Return the file of an API: `ListOffsets` lies in `list_offsets`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


@per_schemas
def api(key: int) -> Api | None:
    """Return the API of a key, or None where it is not known."""
    schemas, declared = current(), _declared(key)
    if schemas is None:
        return declared
    from dissector.protocol.definitions.apis import overlaid_api

    return overlaid_api(schemas, key, declared)


@cache
def _declared(key: int) -> Api | None:
    name = NAMES.get(key)
    if name is None:
        return None
    module = import_module(f"{__name__}.{module_name(name)}")
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
    """Return the JAR or folder whose definition reads a message; None: the built-in one does."""
    if current() is None:
        return None
    found = api(key)
    return None if found is None else found.sources.get((kind, version))


def all_apis() -> list[Api]:
    """Load and return every API in key order."""
    return [found for key in api_keys().values() if (found := api(key)) is not None]
