"""What was gathered of a capture: the input of all sources of findings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from findings.gather.event_groups import EventGroups
from findings.gather.failed_rows import FailedRows
from findings.gather.part_rows import Places
from findings.gather.slow_rows import SlowRows

if TYPE_CHECKING:
    from advise.registry.advice_report import AdviceReport
    from conform.registry.verdict import Verdict
    from dissector.summary.upgrade_check import UpgradeReport
    from findings.gather.capture_lacks import Lack


@dataclass(slots=True)
class CaptureFacts:
    """
    What was gathered; of exchanges, of those that pass the filter.

    Attributes:
        end_ns: End of the last exchange.
        failed: Errors of responses.
        slow: Latencies.
        unanswered: API -> requests without a response.
        broken: API -> exchanges with a problem, such as bytes that can't be read.
        events: Events of the timeline.
        verdict: The verdict of the rules; None if none was applied.
        advice: The advice; None before the end, and if it was not asked for.
        release: Release of Kafka for the upgrade.
        upgrade: Clients that break with brokers of that release.
        lacks: What is missing of the capture, with a count for each.
        topic_name: Returns the name of a topic, which may be an id.
        passes: Whether any of some packets is of an exchange that passes the filter.
    """

    end_ns: int
    failed: FailedRows
    slow: SlowRows
    unanswered: dict[str, Places]
    broken: dict[str, Places]
    events: EventGroups
    verdict: Verdict | None
    advice: AdviceReport | None
    release: str
    upgrade: UpgradeReport
    lacks: list[Lack]
    topic_name: Callable[[object], str]
    passes: Callable[[tuple[int, ...]], bool]
