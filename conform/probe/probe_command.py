"""Implements `kafkashark conform --target`: probe the broker and report the matching release."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Iterator
from time import monotonic

from cluster.client.auth import Security
from conform.probe.probe_runner import ProbeResult, probe_broker
from conform.registry.rule import Rule
from dissector.protocol.releases.kafka_releases import ReleaseMatch
from dissector.view.text.escape import escaped
from dissector.view.text.value_text import json_text

QUIET_S = 30.0
"""Longest time without a line on stderr, but for a tick."""

_TICK_S = 5.0


def probe_with_progress(
    target: str,
    rules: Iterable[Rule],
    security: Security,
    timeout_s: float,
    allow_writes: bool,
    on_warning: Callable[[str], None],
) -> ProbeResult:
    """
    Probe a running broker, and show on stderr how far it is.

    The arguments are those of `probe_broker`.

    Raises:
        UsageError: The target is not an address.
        ReplayError: It can't be reached, or is not a broker.
    """
    progress = ProbeProgress(is_terminal=sys.stderr.isatty())

    async def probe() -> ProbeResult:
        ticker = asyncio.create_task(_tick(progress))
        try:
            return await probe_broker(
                target,
                rules,
                security=security,
                timeout_s=timeout_s,
                allow_writes=allow_writes,
                on_progress=progress.begin,
                on_warning=on_warning,
            )
        finally:
            ticker.cancel()

    try:
        return asyncio.run(probe())
    finally:
        progress.end()


async def _tick(progress: ProbeProgress) -> None:
    while True:
        await asyncio.sleep(_TICK_S)
        progress.tick()


class ProbeProgress:
    """
    Shows the current probe on stderr: on a terminal in one line, which is overwritten.

    Without a terminal there is a line for each family of rules, and one after `QUIET_S` without.
    """

    def __init__(self, *, is_terminal: bool, now: Callable[[], float] = monotonic) -> None:
        self._is_terminal = is_terminal
        self._now = now
        self._text = ""
        self._begun_s = self._shown_s = now()

    def begin(self, text: str) -> None:
        """Show the next probe."""
        is_new_family = text[:1] != self._text[:1]
        self._text, self._begun_s = text, self._now()
        if self._is_terminal or is_new_family:
            self._show(text)

    def tick(self) -> None:
        """Show that the current probe goes on, if nothing was shown for some time."""
        now = self._now()
        if self._text and now - self._shown_s >= QUIET_S:
            self._show(f"{self._text}: {now - self._begun_s:.0f} s so far")

    def end(self) -> None:
        """Clear the line of a terminal."""
        if self._is_terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def _show(self, text: str) -> None:
        self._shown_s = self._now()
        if self._is_terminal:
            print(f"\r\x1b[K{escaped(text)}", end="", file=sys.stderr, flush=True)
        else:
            print(f"kafkashark: probing: {escaped(text)}", file=sys.stderr, flush=True)


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
