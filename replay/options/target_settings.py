"""Settings of a replay: the target, names on it, and how responses are compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from cluster.client.auth import Security
from cluster.conversion.resource_names import NameMap
from dissector.errors import UsageError
from replay.compare.ignore_rules import Noise
from replay.mapping.offset_map import Policy
from replay.options.pacing import MAX_THROTTLE_S
from replay.options.pass_criteria import Criteria, Limit
from replay.options.play_options import PlayOptions

MOCK = "mock"
"""The address of the embedded broker."""


_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class TargetSettings:
    """
    All settings of a replay; the plan is separate.

    Attributes:
        to: `HOST:PORT[,...]`, or `MOCK`.
        security: Encryption and authentication of connections.
        topic_map: Captured topic -> topic on the target.
        prefix: Put before the names of topics, groups and transactional ids.
        offsets: Offset to send in place of one without a mapping.
        create_topics: Whether to create topics that the target lacks.
        play_options: Pacing, repeats and limits.
        noise: The ignore rules.
        show_secrets: Whether secrets are compared and shown.
        criteria: The criteria for a failed replay.
        show_payloads: Whether reports show keys, values and headers of records.
        latency_limits: What latencies must not exceed at the speed that is to be found; empty if
            none is.
        clients: The clients whose view of responses counts; empty for all.
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
    latency_limits: tuple[Limit, ...] = ()
    clients: tuple[str, ...] = ()

    def options(self) -> dict[str, Any]:
        """Return target, speed and all values other than the default, by command-line option."""
        play, pace = self.play_options, self.play_options.pace
        accepted = self.criteria.accepted
        values = {
            "topic-map": [f"{old}={new}" for old, new in self.topic_map.items()],
            "prefix": self.prefix,
            "offsets": self.offsets if self.offsets != "kept" else "",
            "create-topics": self.create_topics,
            "latency-limit": [each.text.partition(":")[2] for each in self.latency_limits],
            "rate": pace.rate,
            "max-wait": pace.max_wait_s,
            "loop": play.loop if play.loop > 1 else None,
            "scale": play.scale if play.scale > 1 else None,
            "stagger": f"{play.stagger_s:g}" if play.scale > 1 else None,
            "limit": play.limit,
            "duration": play.duration_s,
            "ignore-throttle": not play.honours_throttle,
            "no-final-check": not play.final_check,
            "max-throttle": play.max_throttle_s if play.max_throttle_s != MAX_THROTTLE_S else None,
            "tls": self.security.tls is not None,
            "sasl": self.security.mechanism,
            "also": list(self.security.also),
            "follow-advertised": self.security.follow_advertised,
            "allow-plaintext-password": self.security.allow_plaintext_password,
            "ignore": list(self.noise.patterns),
            "for": list(self.clients),
            "fail-on": ",".join(self.criteria.words),
            "accept": len(accepted.lines),
            "upgrade": accepted.upgrade,
            "target-profile": accepted.profile.name,
            "show-secrets": self.show_secrets,
            "show-payloads": self.show_payloads,
        }
        speed = "auto" if self.latency_limits else pace.speed or "max"
        first = {"to": self.to, "speed": speed, "timeout": play.timeout_s}
        return first | {name: value for name, value in values.items() if value}

    def names(self, copy: int) -> NameMap:
        """Return the name mapping of a pass."""
        return NameMap(self.topic_map, self.prefix, self.play_options.first_pass + copy)

    def live_topics(self, captured: Mapping[str, _Value]) -> dict[str, _Value]:
        """
        Return what is given by the captured names of topics, by their live names, for all passes.

        Raises:
            UsageError: Two topics would get the same name.
        """
        topics: dict[str, _Value] = {}
        for names in map(self.names, range(self.play_options.passes)):
            live = {names.topic(topic): value for topic, value in captured.items()}
            if len(live) < len(captured):
                raise UsageError("two captured topics would have the same name on the target")
            topics |= live
        return topics
