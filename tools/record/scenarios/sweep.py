"""
All versions of all APIs of real brokers and controllers, sent by kafkashark's own client.

Clients of other scenarios use the newest version they share with the broker; here all versions are
on the wire. Requests are meaningful where that is cheap: topics exist, groups are joined,
transactions end. Others get error responses. Each response must be decoded completely and encoded
to the same bytes, else the scenario fails.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.broker.server_properties import PASSWORD, USER, Shape
from tools.record.scenario import Stage, scenario
from tools.record.sweep import admin_sweep
from tools.record.sweep.client import CLIENT_ID, SweepClient
from tools.record.sweep.data_sweep import KEYS as DATA
from tools.record.sweep.data_sweep import create_topics, data
from tools.record.sweep.group_sweep import (
    DELETE_GROUPS,
    STREAMS_GROUP_HEARTBEAT,
    groups,
    streams,
)
from tools.record.sweep.group_sweep import KEYS as GROUPS
from tools.record.sweep.quorum_sweep import quorum, snapshot_of
from tools.record.sweep.share_sweep import KEYS as SHARE
from tools.record.sweep.share_sweep import share, state
from tools.record.sweep.transaction_sweep import KEYS as TRANSACTIONS
from tools.record.sweep.transaction_sweep import (
    TXN_OFFSET_COMMIT,
    transaction,
    transactions,
)
from tools.record.sweep.zookeeper_sweep import speaking, with_zookeeper, zookeeper

_PROPERTIES = (
    ("unstable.api.versions.enable", "true"),
    ("unstable.feature.versions.enable", "true"),
    # To get a snapshot soon.
    ("metadata.log.max.record.bytes.between.snapshots", "1000"),
)
SWEEP_4 = Shape("4.x", sasl=True, properties=_PROPERTIES)
SWEEP_39 = Shape("3.9.x", sasl=True, properties=_PROPERTIES)
_EARLY_SHARE = (
    ("group.share.enable", "true"),
    ("group.coordinator.rebalance.protocols", "classic,consumer,share"),
)
SWEEP_40 = Shape("4.0.0", properties=_PROPERTIES + _EARLY_SHARE)
"""The release with version 0 of share group APIs."""
WITH_ZOOKEEPER = Shape("3.9.x", properties=(("sweep", "with ZooKeeper"),))

Play = Callable[[Stage], None]


def _sweep(name: str, shows: str, inside: bool = False, **shapes: Shape) -> Callable[[Play], Play]:
    """Register a scenario for each release."""

    def register(play: Play) -> Play:
        for release, shape in (shapes or {"kafka4": SWEEP_4, "kafka39": SWEEP_39}).items():
            sign_up = scenario(
                f"{release}-sweep-{name}", shows, client=CLIENT_ID, cluster=shape, inside=inside
            )
            sign_up(play)
        return play

    return register


@_sweep("data", "Every version of Produce, Fetch, ListOffsets, Metadata and their like")
def sweep_data(stage: Stage) -> None:
    with SweepClient(stage.cluster.bootstrap()) as speaker:
        data(speaker)


@_sweep("groups", "Every version of what classic, consumer and streams groups say")
def sweep_groups(stage: Stage) -> None:
    with SweepClient(stage.cluster.bootstrap()) as speaker:
        groups(speaker)


@_sweep(
    "share",
    "Every version of what share groups say, and of the state that brokers keep of them",
    kafka4=SWEEP_4,
)
def sweep_share(stage: Stage) -> None:
    with SweepClient(stage.cluster.bootstrap()) as speaker:
        share(speaker)
        state(speaker)


@_sweep(
    "share",
    "Version 0 of what share groups say, which 4.0 was the only release to answer",
    kafka40=SWEEP_40,
)
def sweep_early_share(stage: Stage) -> None:
    # Without the brokers' messages about share state: their version 0 got another field before the
    # release.
    with SweepClient(stage.cluster.bootstrap()) as speaker:
        share(speaker)


@_sweep("transactions", "Every version of the APIs of transactions")
def sweep_transactions(stage: Stage) -> None:
    with SweepClient(stage.cluster.bootstrap()) as speaker:
        transactions(speaker)


@_sweep("admin", "Every version of what administrators ask of a broker")
def sweep_of_admin(stage: Stage) -> None:
    with SweepClient(stage.cluster.bootstrap()) as speaker:
        admin_sweep.greetings(speaker)
        admin_sweep.topics(speaker)
        admin_sweep.settings(speaker)
        admin_sweep.cluster(speaker)
        elsewhere = {*DATA, *GROUPS, *SHARE, *TRANSACTIONS, *admin_sweep.TOKEN_KEYS}
        speaker.rest(set(speaker.offered) - elsewhere)


@_sweep("sasl", "Every version of the logins of SASL, and of delegation tokens")
def sweep_sasl(stage: Stage) -> None:
    secure = stage.cluster.bootstrap("SASL_PLAINTEXT")
    with SweepClient(secure) as speaker:
        admin_sweep.logins(speaker, USER, PASSWORD)
    with SweepClient(secure, (USER, PASSWORD)) as speaker:
        admin_sweep.tokens(speaker)


@_sweep("quorum", "Every version that a controller of KRaft offers", inside=True)
def sweep_quorum(stage: Stage) -> None:
    topic = "sweep.quorum"
    with SweepClient(stage.cluster.bootstrap()) as speaker:
        topic_id = create_topics(speaker, topic)[topic]
    node = stage.cluster.nodes[0]
    snapshot = snapshot_of(node.folder / "data" / "one" / "__cluster_metadata-0")
    with SweepClient(node.address.at("CONTROLLER")) as speaker:
        quorum(speaker, (topic, topic_id), snapshot)


@_sweep("too-new", "A client that is newer than the broker asks for its versions (KIP-511)")
def sweep_too_new(stage: Stage) -> None:
    with SweepClient(stage.cluster.bootstrap()) as speaker:
        admin_sweep.too_new(speaker)


@_sweep(
    "new",
    "What Kafka 4.4 added: ApiVersions v5, a transaction with TxnOffsetCommit v6, DeleteGroups v3, "
    "a streams group of v1 with its topology, UnregisterController",
    kafka44=SWEEP_4,
)
def sweep_new(stage: Stage) -> None:
    with SweepClient(stage.cluster.bootstrap()) as speaker:
        new(speaker)


def new(speaker: SweepClient) -> None:
    """Send the versions added by Kafka 4.4."""
    topic, group = "sweep.new", "sweep.streams.1"
    topic_id = create_topics(speaker, topic)[topic]
    admin_sweep.meant_for_another(speaker)
    transaction(speaker, speaker.versions(TXN_OFFSET_COMMIT)[-1], topic_id, topic)
    streams(speaker, speaker.versions(STREAMS_GROUP_HEARTBEAT)[-1], topic, group)
    speaker.newest(DELETE_GROUPS, groups_names=[group, "sweep.unknown"])
    speaker.newest(admin_sweep.UNREGISTER_CONTROLLER, controller_id=77)


@_sweep(
    "zookeeper",
    "Every version of controllers' requests to brokers before KRaft: LeaderAndIsr, StopReplica, "
    "UpdateMetadata, ControlledShutdown",
    kafka39=WITH_ZOOKEEPER,
)
def sweep_zookeeper(stage: Stage) -> None:
    with with_zookeeper(stage) as address, speaking(address) as speaker:
        zookeeper(speaker, stage.cluster.nodes[0])
