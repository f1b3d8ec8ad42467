"""Display filters of findings."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dissector.filter.literals import Literal
from timeline.events.event import Evidence

_WORD = re.compile(r"[A-Za-z][A-Za-z_]*")


def literal(text: str) -> str:
    """Return a text as a literal; empty texts stand for null."""
    if not text:
        return "null"
    return text if _WORD.fullmatch(text) else str(Literal(text, quoted=True))


def of_api(api: str, *tests: str) -> str:
    """Return a filter for an API, and more tests."""
    return " and ".join((f"api == {literal(api)}", *tests))


def of_messages(requests: Iterable[int], responses: Iterable[int]) -> str:
    """Return a filter for exchanges by the packets of their messages; empty without any."""
    tests = (_in("request_packet", requests), _in("response_packet", responses))
    return " or ".join(filter(None, tests))


def of_evidence(evidence: Iterable[Evidence]) -> str:
    """Return a filter for the exchanges of some evidence; empty without any."""
    exchanges = [each for each in evidence if each.api is not None]
    requests = [each.request_packet for each in exchanges if each.request_packet is not None]
    orphans = [
        each.response_packet
        for each in exchanges
        if each.request_packet is None and each.response_packet is not None
    ]
    return of_messages(requests, orphans)


def _in(column: str, packets: Iterable[int]) -> str:
    numbers = sorted(set(packets))
    if len(numbers) == 1:
        return f"{column} == {numbers[0]}"
    return f"{column} in {{{', '.join(map(str, numbers))}}}" if numbers else ""
