"""Requests that the target can't do: it has no API, version or codec for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from dissector.protocol.error_codes import error_code
from replay.model.outcome import Difference
from replay.model.row import Row

_ERRORS = {
    error_code(name): what
    for name, what in (
        ("UNSUPPORTED_VERSION", "the target refuses the version, or a feature that it carries"),
        ("UNSUPPORTED_FOR_MESSAGE_FORMAT", "the target refuses the format of the records"),
        ("UNSUPPORTED_COMPRESSION_TYPE", "the target has no codec for the records"),
        ("UNSUPPORTED_ASSIGNOR", "the target has no such assignor"),
        ("POLICY_VIOLATION", "the target refuses it by policy"),
    )
}
"""Error of a target -> what it can't do."""

_MAX_KINDS, _MAX_CLIENTS = 1000, 100
"""Bounds of what is kept, as names come from the capture."""

OTHERS = "others"


def why_unsupported(differences: Iterable[Difference]) -> str:
    """Return what the target can't do, by the errors with which it answers; empty without one."""
    found = (_ERRORS.get(each.replayed) for each in differences if each.is_error)
    return next(filter(None, found), "")


@dataclass(slots=True)
class _Kind:
    accepted: bool
    documented: str
    count: int = 0
    clients: Counter[str] = field(default_factory=Counter)


class UnsupportedRequests:
    """Counts requests that the target can't do, by API and reason, with the clients."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str], _Kind] = {}

    def add(
        self, api: str, why: str, client: str, *, accepted: bool = False, documented: str = ""
    ) -> None:
        """
        Count a request.

        Args:
            api: The API.
            why: What the target can't do.
            client: The client that needs it.
            accepted: Whether `--accept` lists it.
            documented: The page of a target profile that documents it.
        """
        key = (api, why)
        if key not in self._kinds and len(self._kinds) >= _MAX_KINDS:
            key = (api, OTHERS)
        kind = self._kinds.setdefault(key, _Kind(accepted, documented))
        kind.count += 1
        is_listed = client in kind.clients or len(kind.clients) < _MAX_CLIENTS
        kind.clients[client if is_listed else OTHERS] += 1

    def absorb(self, rows: Iterable[Row]) -> None:
        """Add the rows of another report."""
        for row in rows:
            key = (row["api"], row["reason"])
            kind = self._kinds.setdefault(key, _Kind(row["accepted"], row["documented"]))
            kind.count += row["count"]
            kind.clients.update(row["clients"])

    @property
    def failing(self) -> int:
        """The number of requests, without accepted ones."""
        return sum(kind.count for kind in self._kinds.values() if not kind.accepted)

    @property
    def unsent_apis(self) -> list[str]:
        """The APIs of requests that were not sent; others have an error code, as a difference."""
        return sorted({api for api, why in self._kinds if why not in _ERRORS.values()})

    @property
    def failing_apis(self) -> list[str]:
        """The APIs of these requests."""
        return sorted({api for (api, _), kind in self._kinds.items() if not kind.accepted})

    def rows(self) -> list[Row]:
        """Return a row for each API and reason, the most frequent first."""
        found = sorted(self._kinds.items(), key=lambda item: -item[1].count)
        return [
            {
                "api": api,
                "reason": why,
                "count": kind.count,
                "clients": dict(kind.clients.most_common()),
                "accepted": kind.accepted,
                "documented": kind.documented,
            }
            for (api, why), kind in found
        ]

    def shown(self) -> Iterator[Row]:
        """Yield the rows for readers: clients by name, the longest column last."""
        for row in self.rows():
            yield {
                "count": row["count"],
                "api": row["api"],
                "clients": ", ".join(row["clients"]),
                "documented": row["documented"] or ("accepted" if row["accepted"] else ""),
                "reason": row["reason"],
            }
