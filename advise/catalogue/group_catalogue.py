"""Advices on groups."""

from __future__ import annotations

from advise.registry.advice import Rank, advice

REBALANCE_LOOP = advice(
    "rebalance-loop",
    Rank.COSTLY,
    "A group that rebalances again and again",
    what="A group comes to a new generation every few seconds.",
    cost="With eager assignors all members stop at each rebalance, and process again what they had "
    "not committed.",
    settings=(
        "group.protocol=consumer, or CooperativeStickyAssignor; group.instance.id",
        "group.protocol=consumer, or cooperative-sticky assignment; group.instance.id",
        "kgo.Balancers(kgo.CooperativeStickyBalancer()), kgo.InstanceID, kgo.SessionTimeout",
        "Consumer.Group.InstanceId, Session.Timeout, one Consume() loop for each member",
        "session_timeout_ms, max_poll_interval_ms, group_instance_id",
        "sessionTimeout, rebalanceTimeout, heartbeatInterval",
    ),
    source="KIP-62, KIP-345 (static members), KIP-429 (cooperative), KIP-848",
    count=(5, "rebalances of a group"),
    seconds=(10, "seconds in which the group was seen"),
    rate=(4, "rebalances a minute"),
)

COMMITS_IN_REBALANCES = advice(
    "commits-in-rebalances",
    Rank.COSTLY,
    "Commits refused because the group moved on",
    what="A consumer commits offsets while its group rebalances, or for a generation that is over.",
    cost="The commit fails, and the records are processed twice by the partition's next owner.",
    settings=(
        "commitSync() in onPartitionsRevoked, and no commits of other threads",
        "commit in the rebalance callback, before unassign",
        "kgo.OnPartitionsRevoked with CommitMarkedOffsets, kgo.BlockRebalanceOnPoll",
        "Commit() in Cleanup(), return from ConsumeClaim when Session.Context() is done",
        "commit() in on_partitions_revoked",
        "commitOffsetsIfNecessary() in eachBatch, stop when isStale()",
    ),
    source="Javadoc of ConsumerRebalanceListener; KIP-429",
    count=(3, "refused commits of a client"),
)

CLASSIC_GROUP = advice(
    "classic-group",
    Rank.INFORMS,
    "Classic groups where the broker has the new protocol",
    what="Consumers use JoinGroup and SyncGroup, though brokers offer ConsumerGroupHeartbeat.",
    cost="A classic group stops at each rebalance until its slowest member has joined; with the "
    "new protocol the broker moves single partitions.",
    settings=(
        "group.protocol=consumer (4.0 or later)",
        "group.protocol=consumer (2.12 or later)",
        "the option for KIP-848 groups of a release that has it",
        "not in sarama 1.61",
        "not in kafka-python 3.0",
        "not in kafkajs 2.2",
    ),
    source="KIP-848",
    count=(1, "members that joined"),
)

ZOMBIE_MEMBERS = advice(
    "zombie-members",
    Rank.RISKY,
    "Members or producers that others have replaced",
    what="A client goes on after the broker has given its place to another: it is fenced.",
    cost="Two processes share an instance id or a transactional id, or one was silent for so long "
    "that it was removed: each stops the other, and work is done twice.",
    settings=(
        "group.instance.id and transactional.id different in each process",
        "group.instance.id and transactional.id different in each process",
        "kgo.InstanceID and kgo.TransactionalID different in each process",
        "Consumer.Group.InstanceId and Producer.Transaction.ID different in each process",
        "group_instance_id and transactional_id different in each process",
        "transactionalId different in each process",
    ),
    source="KIP-345 (FENCED_INSTANCE_ID), KIP-98 and KIP-588 (fenced producers)",
    count=(2, "refused requests of a client"),
)
