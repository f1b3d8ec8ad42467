"""Faults injected into requests that pass a display filter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from construct import Container

from dissector.errors import UsageError
from dissector.filter import Filter, parse
from dissector.protocol.error_codes import error_code
from dissector.protocol.facts import Facts, collect
from serve.answers.client_request import ClientRequest
from serve.answers.mirrored_errors import error_answer
from serve.forms.canonical_body import canonical_schema, canonical_version


class FaultKind(Enum):
    """Kinds of faults."""

    ERROR = auto()
    DELAY = auto()
    CLOSE = auto()
    TRUNCATE = auto()


@dataclass(slots=True)
class Fault:
    """
    A fault, and its filter.

    Attributes:
        filter: Selects requests.
        kind: Kind of the fault.
        text: Text of the option, for the report.
        code: Error code, for `ERROR`.
        delay_s: Delay, for `DELAY`.
        left: Remaining injections; None for no limit.
    """

    filter: Filter
    kind: FaultKind
    text: str
    code: int = 0
    delay_s: float = 0.0
    left: int | None = None

    @classmethod
    def of(cls, filter_text: str, action: str) -> Fault:
        """
        Parse a filter and an action: `ERROR|delay:MS|close|truncate[,times:N]`.

        Raises:
            FilterError: The filter is invalid.
            UsageError: The action is invalid.
        """
        found = parse(filter_text)
        what, comma, times = action.partition(",")
        left = _number(times.removeprefix("times:"), action) if comma else None
        if comma and not times.startswith("times:"):
            raise _unknown(action)
        text = f"{filter_text!r} {action}"
        if what.startswith("delay:"):
            delay_s = _number(what.removeprefix("delay:"), action) / 1000
            return cls(found, FaultKind.DELAY, text, delay_s=delay_s, left=left)
        if what in ("close", "truncate"):
            kind = FaultKind.CLOSE if what == "close" else FaultKind.TRUNCATE
            return cls(found, kind, text, left=left)
        code = error_code(what)
        if not code:
            raise _unknown(action)
        return cls(found, FaultKind.ERROR, text, code=code, left=left)

    def answer(self, request: ClientRequest) -> Container:
        """Return a response with the error."""
        return error_answer(request.api_key, request.body, self.code)


class Faults:
    """
    All faults of a server.

    Args:
        faults: Faults in order of precedence.
        counts: Counts injections by the text of the fault.
    """

    def __init__(self, faults: Iterable[Fault], counts: Counter[str]) -> None:
        self._faults = list(faults)
        self._counts = counts

    def take(self, request: ClientRequest) -> Fault | None:
        """Return the fault to inject into a request, or None."""
        for fault in self._faults:
            if fault.left != 0 and fault.filter.matches(RequestRow(request)):
                if fault.left is not None:
                    fault.left -= 1
                self._counts[fault.text] += 1
                return fault
        return None


class RequestRow:
    """A request as a row for display filters; columns of responses are null."""

    def __init__(self, request: ClientRequest) -> None:
        self._request = request

    def column(self, name: str) -> object:
        """Return a column of `pairs`."""
        message = self._request.message
        match name:
            case "api" | "api_key" | "correlation_id" | "client_id":
                return getattr(message, name)
            case "api_version":
                return message.shown_version
            case "connection":
                return self._request.connection
            case "request_bytes":
                return message.size
            case "topics":
                return self._topics()
            case "errors" | "problems":
                return []
        return None

    def body(self, kind: str) -> Mapping[str, Any] | None:
        """Return the body of the request in its original version."""
        return self._request.message.body if kind == "request" else None

    def _topics(self) -> list[str]:
        # The canonical body has names, where the request of a newer version has ids.
        key, facts = self._request.api_key, Facts()
        collect(canonical_schema(key, "request"), canonical_version(key), self._request.body, facts)
        return [str(topic) for topic in facts.topics]


def _number(text: str, action: str) -> int:
    if not text.isdecimal():
        raise _unknown(action)
    return int(text)


def _unknown(action: str) -> UsageError:
    return UsageError(
        f"unknown fault {action!r}: use the name of a Kafka error, delay:MS, close or truncate, "
        "optionally followed by ,times:N"
    )
