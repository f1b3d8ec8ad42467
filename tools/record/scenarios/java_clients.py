"""Kafka's own Java clients and command line tools, from the jars of the broker."""

from __future__ import annotations

from pathlib import Path

from tests.broker.server_properties import Shape
from tools.record.java_tools import tool
from tools.record.scenario import KAFKA_4, KAFKA_39, Stage, orders, scenario

_PROGRAMS = Path(__file__).parents[1] / "programs"


def program(stage: Stage, name: str, *arguments: str, with_tools: bool = False) -> str:
    """Run one of the Java programs of the recorder; see `tool`."""
    main = str(_PROGRAMS / f"{name}.java")
    return tool(stage, main, stage.bootstrap, *arguments, with_tools=with_tools)


@scenario(
    "kafka4-java-admin",
    "Every call of Kafka's Java admin client (source run from the broker's jars)",
    client="java",
    cluster=KAFKA_4,
)
@scenario(
    "kafka39-java-admin",
    "Every call of Kafka's Java admin client (source run from the broker's jars)",
    client="java",
    cluster=KAFKA_39,
)
def admin_calls(stage: Stage) -> None:
    other = stage.cluster.nodes[0].folder / "data" / "two"
    program(stage, "AdminCalls", stage.scenario, str(other))


@scenario(
    "kafka4-java-clients",
    "Java producers with every codec, headers and tombstones; classic and KIP-848 groups; offsets "
    "in a transaction, an aborted transaction",
    client="java",
    cluster=KAFKA_4,
)
@scenario(
    "kafka39-java-clients",
    "Java producers with every codec, headers and tombstones; classic and KIP-848 groups; offsets "
    "in a transaction, an aborted transaction",
    client="java",
    cluster=KAFKA_39,
)
@scenario(
    "kafka44-java-clients",
    "Java clients of Kafka 4.4: producers with every codec, classic and KIP-848 groups, offsets in "
    "transactions by topic ids (KIP-1319)",
    client="java",
    cluster=KAFKA_4,
)
def clients(stage: Stage) -> None:
    program(stage, "Transactions", stage.topic())


@scenario(
    "kafka4-java-share-group",
    "A share group (KIP-932): two members that accept, release and reject records; its admin calls",
    client="java",
    cluster=KAFKA_4,
)
def share_group(stage: Stage) -> None:
    program(stage, "ShareGroup", stage.topic())


@scenario(
    "kafka44-java-streams-group",
    "A member of a streams group, by Kafka's Java consumer: heartbeats v1, the topology's "
    "description (KIP-1331); the admin client describes and deletes it, and unregisters a "
    "controller",
    client="java",
    cluster=KAFKA_4,
)
def streams_member(stage: Stage) -> None:
    program(stage, "StreamsGroup", stage.topic())


@scenario(
    "kafka4-java-tools",
    "Kafka's command line tools: console producer, consumer and share consumer, topics, configs, "
    "groups, acls, features, quorum, log dirs, transactions, offsets, broker API versions",
    client="java",
    cluster=KAFKA_4,
)
def command_line(stage: Stage) -> None:
    at, topic = ("--bootstrap-server", stage.bootstrap), stage.topic()
    group = stage.topic("group")
    lines = "".join(f"{value.decode()}\n" for _, value in orders(6))
    tool(stage, "tools.TopicCommand", *at, "--create", "--topic", topic)
    tool(stage, "tools.ConsoleProducer", *at, "--topic", topic, send=lines)
    take = ("--topic", topic, "--max-messages", "6", "--timeout-ms", "15000")
    tool(stage, "tools.consumer.ConsoleConsumer", *at, *take, "--from-beginning", "--group", group)
    for main, arguments in (
        ("tools.TopicCommand", ("--describe", "--topic", topic)),
        ("tools.consumer.group.ConsumerGroupCommand", ("--describe", "--group", group)),
        ("tools.consumer.group.ConsumerGroupCommand", ("--list", "--state")),
        ("tools.GroupsCommand", ("--list",)),
        ("admin.ConfigCommand", ("--describe", "--entity-type", "brokers", "--all")),
        ("tools.AclCommand", ("--list",)),
        ("tools.FeatureCommand", ("describe",)),
        ("tools.MetadataQuorumCommand", ("describe", "--status")),
        ("tools.LogDirsCommand", ("--describe", "--topic-list", topic)),
        ("tools.TransactionsCommand", ("list",)),
        ("tools.GetOffsetShell", ("--topic", topic)),
        ("tools.BrokerApiVersionsCommand", ()),
        ("tools.ClientMetricsCommand", ("--list",)),
        ("tools.TopicCommand", ("--delete", "--topic", topic)),
    ):
        tool(stage, main, *at, *arguments)
    tool(stage, "tools.ClusterTool", "list-endpoints", *at)


def _sweep(stage: Stage, listener: str, keys: tuple[int, int]) -> None:
    tool(stage, "tools.TopicCommand", "--bootstrap-server", stage.bootstrap, "--create",
         "--if-not-exists", "--topic", "sweep")  # fmt: skip
    output = tool(stage, "tools.TopicCommand", "--bootstrap-server", stage.bootstrap, "--describe",
                "--topic", "sweep")  # fmt: skip
    topic_id = output.split("TopicId:")[1].split()[0]
    port = stage.cluster.nodes[0].address.ports[listener]
    arguments = (str(port), "sweep", topic_id, *map(str, keys))
    tool(stage, str(_PROGRAMS / "Sweep.java"), *arguments)


def _register(cluster: Shape, prefix: str) -> None:
    for listener, part, keys in (
        ("PLAINTEXT", "clients-1", (0, 7)),
        ("PLAINTEXT", "clients-2", (8, 19)),
        ("PLAINTEXT", "clients-3", (20, 999)),
        ("CONTROLLER", "controllers", (0, 999)),
    ):

        def play(stage: Stage, listener: str = listener, keys: tuple[int, int] = keys) -> None:
            _sweep(stage, listener, keys)

        scenario(
            f"{prefix}-sweep-{part}",
            f"Every API at every version of the {listener.lower()} listener, written by Kafka's "
            "generated classes; many answers are errors",
            client="java",
            cluster=cluster,
            inside=listener == "CONTROLLER",
        )(play)


_register(Shape("4.x", properties=(("sweep", "4"),)), "kafka4")
_register(Shape("3.9.x", properties=(("sweep", "3.9"),)), "kafka39")
