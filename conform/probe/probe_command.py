"""Implements `kafkashark conform --target`: probe the broker and report the matching release."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Iterator

from conform.probe.probe_runner import ProbeResult, probe_broker
from conform.registry.rule import Rule
from dissector.protocol.releases.kafka_releases import ReleaseMatch
from dissector.view.text.escape import escaped
from dissector.view.text.value_text import json_text
from replay.client.auth import Security


def probe_with_progress(
    target: str,
    rules: Iterable[Rule],
    security: Security,
    timeout_s: float,
    allow_writes: bool,
    on_warning: Callable[[str], None],
) -> ProbeResult:
    """
    Probe a running broker; on a terminal, stderr shows the current rule.

    The arguments are those of `probe_broker`.

    Raises:
        UsageError: The target is not an address.
        ReplayError: It can't be reached, or is not a broker.
    """
    is_shown = sys.stderr.isatty()

    def show_rule(text: str) -> None:
        if is_shown:
            print(f"\r\x1b[K{escaped(text)}", end="", file=sys.stderr, flush=True)

    try:
        return asyncio.run(
            probe_broker(
                target,
                rules,
                security=security,
                timeout_s=timeout_s,
                allow_writes=allow_writes,
                on_progress=show_rule,
                on_warning=on_warning,
            )
        )
    finally:
        if is_shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def release_lines(match: ReleaseMatch, form: str) -> Iterator[str]:
    """Yield the best matching release, in the formats that support it."""
    if form == "text":
        yield from _text_lines(match)
    elif form == "ndjson":
        yield json_text(
            {
                "section": "release",
                "best": list(match.releases),
                "exact": match.is_exact,
                "differences": [
                    {
                        "api_key": each.api_key,
                        "offered": each.offered and list(each.offered),
                        "expected": each.expected and list(each.expected),
                        "by_setting": each.is_by_setting,
                    }
                    for each in match.differences
                ],
            }
        )


def _text_lines(match: ReleaseMatch) -> Iterator[str]:
    relation = "are those of" if match.is_exact else "are most like those of"
    yield ""
    yield f"The offered versions {relation} Kafka {' or '.join(match.releases)}"
    for each in match.differences:
        if not each.is_by_setting:
            yield f"  {each}"
    explained = sum(each.is_by_setting for each in match.differences)
    if explained:
        yield f"  {explained} more APIs differ, which the broker's settings may explain"
