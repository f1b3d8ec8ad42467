"""What a pass wrote, and what the target reported meanwhile: the input of the end check."""

from __future__ import annotations

from construct import Container

from cluster.client.broker_metadata import Topology
from replay.final.commits import Commits
from replay.final.endings import Endings
from replay.final.log_bounds import BoundsOfLogs, Exchange
from replay.final.removal_check import Removals
from replay.final.setting_check import CreatedTopics
from replay.final.share_check import ShareProgress
from replay.final.topic_check import TopicChanges


class Written:
    """
    The requests of a pass that change the target, and the bounds in its responses.

    Args:
        target: The metadata of the target.

    Attributes:
        commits: The committed offsets.
        endings: The ends of transactions.
        bounds: The bounds of logs.
        topics: The topics that the pass created, extended or deleted.
        created: Replicas and settings of those that it created.
        shares: What share groups were given and acknowledged.
        removals: Members that left, groups and topics that were deleted.
    """

    def __init__(self, target: Topology) -> None:
        self.commits = Commits(target)
        self.endings = Endings()
        self.bounds = BoundsOfLogs(target)
        self.topics = TopicChanges()
        self.created = CreatedTopics()
        self.shares = ShareProgress()
        self.removals = Removals()
        self._target = target

    def record_request(self, api: str, version: int, body: Container, step: int) -> None:
        """Record a request that is about to be sent."""
        self.commits.record_request(api, version, body, step)
        self.endings.record_request(api, body, step)
        if api == "DeleteTopics":
            names = [*(body.get("topic_names") or ())]
            for topic in body.get("topics") or ():
                names.append(topic.name or self._target.topic_name(topic.topic_id))
            for name in filter(None, names):
                self.topics.record_deletion(name)
                self.created.record_deletion(name)
                self.bounds.end_topic(name)
        self.topics.record_request(api, body)
        self.created.record_request(api, body)
        self.shares.record_request(api, body, step)
        self.removals.record_request(api, body, step)

    def record_response(self, api: str, exchange: Exchange) -> None:
        """Record a response."""
        self.commits.record_response(api, exchange.request, exchange.response)
        self.endings.record_response(api, exchange.request, exchange.response)
        for changes in (self.topics, self.created):
            changes.record_response(api, exchange.step, exchange.request, exchange.response)
        self.shares.record_response(api, exchange.request, exchange.response)
        self.removals.record_response(api, exchange.request, exchange.response)
        self.bounds.record(api, exchange)
