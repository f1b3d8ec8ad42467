"""Exchanges with an error in the response, and whether the same request was then fine."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from dissector.engine.tables.column_types import distinct, select_rows
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.summary.group_keys import group_rows
from findings.gather.part_rows import PartRows, Places

MAX_KINDS, MAX_PENDING = 10_000, 10_000

Kind: TypeAlias = tuple[str, str]
"""API and error."""

_Request: TypeAlias = tuple[object, ...]
"""Client, API and topics of requests that repeat one another."""


@dataclass(slots=True)
class FailedRows:
    """
    Errors by API and name.

    Attributes:
        places: Kind -> its exchanges.
        fine: Kind -> how many of them the same client repeated later without an error.
    """

    places: dict[Kind, Places] = field(default_factory=dict)
    fine: Counter[Kind] = field(default_factory=Counter)
    _pending: dict[_Request, Counter[Kind]] = field(default_factory=dict)

    def add(self, part: PartRows) -> None:
        """Add the exchanges of a window."""
        rows = np.flatnonzero(part.failed)
        if not len(rows) and not self._pending:
            return
        request, labels = _requests(part)
        fine_ns = self._last_fine(part, request, len(labels))
        self._settle(labels, fine_ns)
        if not len(rows):
            return
        found = group_rows(select_rows(part.columns, rows), ("api", "error"), _no_software)
        of_kind = rows[found.rows]
        is_fine = fine_ns[request[of_kind]] > part.time_ns[of_kind]
        for code, (api, error) in enumerate(found.labels):
            chosen = found.codes == code
            kind = str(api or ""), str(error)
            if not chosen.any() or (kind not in self.places and len(self.places) >= MAX_KINDS):
                continue
            self.places.setdefault(kind, Places()).add(part, of_kind[chosen])
            self.fine[kind] += int(np.sum(is_fine & chosen))
            self._wait(kind, request[of_kind[chosen & ~is_fine]], labels)

    def _last_fine(self, part: PartRows, request: Ints, count: int) -> Ints:
        """Return for each request the time at which it last had no error; NONE: never."""
        last = np.full(count, NONE, np.int64)
        rows = np.flatnonzero(part.has("status", "answered") & ~part.failed)
        np.maximum.at(last, request[rows], part.time_ns[rows])
        return last

    def _settle(self, labels: list[_Request], fine_ns: Ints) -> None:
        """Count the errors of earlier windows that are over."""
        if self._pending:
            for code in np.flatnonzero(fine_ns != NONE).tolist():
                self.fine.update(self._pending.pop(labels[code], {}))

    def _wait(self, kind: Kind, requests: Ints, labels: list[_Request]) -> None:
        which, codes = distinct(requests)
        for code, count in zip(codes.tolist(), np.bincount(which).tolist(), strict=True):
            label = labels[code]
            if label in self._pending or len(self._pending) < MAX_PENDING:
                self._pending.setdefault(label, Counter())[kind] += count


def _requests(part: PartRows) -> tuple[Ints, list[_Request]]:
    """Return for each exchange the index of its request among the distinct ones, and these."""
    found = group_rows(part.columns, ("client", "api"), _no_software)
    topics = part.coded("topics")
    base = len(topics.values) + 1
    codes, distinct_codes = distinct(found.codes * base + topics.codes + 1)
    labels: list[_Request] = []
    for code in distinct_codes.tolist():
        of_client, of_topics = divmod(code, base)
        named = topics.values[of_topics - 1] if of_topics else ()
        labels.append((*found.labels[of_client], *map(str, named)))
    numbers: dict[_Request, int] = {}
    unified = np.array([numbers.setdefault(each, len(numbers)) for each in labels], np.int64)
    return unified[codes], list(numbers)


def _no_software(connection: int) -> tuple[None, None]:
    return None, None
