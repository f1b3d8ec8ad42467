"""Whom a replay talks to, under which names, and what it takes for the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dissector.errors import UsageError
from replay.client.auth import Security
from replay.compare.ignore_rules import Noise
from replay.mapping.offset_map import Policy
from replay.mapping.resource_names import NameMap
from replay.options.pass_criteria import Criteria
from replay.options.play_options import PlayOptions

MOCK = "mock"
"""In the place of an address: the embedded broker."""


@dataclass(frozen=True, slots=True)
class TargetSettings:
    """
    All that is to be said of a replay but what is played.

    Attributes:
        to: `HOST:PORT[,...]`, or `MOCK`.
        security: How connections to it are encrypted and authenticated.
        topic_map: Topics with names of their own on the target.
        prefix: Put before the names of topics, groups and transactional ids.
        offsets: What is sent for an offset that nothing is known of.
        create_topics: Whether topics that the target lacks are created.
        play_options: How fast, how often, how long.
        noise: Differences that do not count.
        show_secrets: Whether secrets are compared and shown.
        criteria: What makes the replay fail.
        show_payloads: Whether keys, values and headers of records are shown in reports.
    """

    to: str
    security: Security = Security()  # noqa: RUF009 (frozen)
    topic_map: Mapping[str, str] = field(default_factory=dict)
    prefix: str = ""
    offsets: Policy = "kept"
    create_topics: bool = False
    play_options: PlayOptions = PlayOptions()  # noqa: RUF009 (frozen)
    noise: Noise = field(default_factory=Noise)
    show_secrets: bool = False
    criteria: Criteria = field(default_factory=Criteria)
    show_payloads: bool = False

    def options(self) -> dict[str, Any]:
        """Return what is not by default, and target and speed, as the command line has them."""
        manner, pace = self.play_options, self.play_options.pace
        accepted = self.criteria.accepted
        given = {
            "topic-map": [f"{old}={new}" for old, new in self.topic_map.items()],
            "prefix": self.prefix,
            "offsets": self.offsets if self.offsets != "kept" else "",
            "create-topics": self.create_topics,
            "rate": pace.rate,
            "max-wait": pace.max_wait_s,
            "loop": manner.loop if manner.loop > 1 else None,
            "limit": manner.limit,
            "duration": manner.duration_s,
            "ignore-throttle": not manner.honours_throttle,
            "tls": self.security.tls is not None,
            "sasl": self.security.mechanism,
            "ignore": list(self.noise.patterns),
            "fail-on": ",".join(self.criteria.words),
            "accept": len(accepted.lines),
            "upgrade": accepted.upgrade,
            "show-secrets": self.show_secrets,
            "show-payloads": self.show_payloads,
        }
        first = {"to": self.to, "speed": pace.speed or "max", "timeout": manner.timeout_s}
        return first | {name: value for name, value in given.items() if value}

    def names(self, copy: int) -> NameMap:
        """Return the names of a pass."""
        return NameMap(self.topic_map, self.prefix, copy)

    def live_topics(self, captured: Mapping[str, int]) -> dict[str, int]:
        """
        Return topics with their partitions by the names that they have in all passes.

        Raises:
            UsageError: Two topics would have the same name.
        """
        found: dict[str, int] = {}
        for names in map(self.names, range(self.play_options.loop)):
            live = {names.topic(topic): count for topic, count in captured.items()}
            if len(live) < len(captured):
                raise UsageError("two captured topics would have the same name on the target")
            found |= live
        return found
