"""Faults, each for the requests that pass a display filter."""

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


class FaultKind(Enum):
    """What is done to a request."""

    ERROR = auto()
    DELAY = auto()
    CLOSE = auto()
    TRUNCATE = auto()


@dataclass(slots=True)
class Fault:
    """
    A fault.

    Attributes:
        filter: Which requests get it.
        kind: What they get.
        text: As the user wrote it.
        code: The error.
        delay_s: The delay.
        left: How many more get it; None for all.
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
        Read a fault: a filter, and `ERROR|delay:MS|close|truncate[,times:N]`.

        Raises:
            FilterError: The filter is invalid.
            UsageError: There is no such action.
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

    @classmethod
    def parse(cls, text: str) -> Fault:
        """
        Read a fault as on the command line: `FILTER -> ACTION`.

        Raises:
            FilterError: The filter is invalid.
            UsageError: There is no action.
        """
        filter_text, arrow, action = text.rpartition("->")
        if not arrow:
            raise UsageError(f"--fault takes 'FILTER -> ACTION', not {text!r}")
        return cls.of(filter_text.strip(), action.strip())

    def answer(self, request: ClientRequest) -> Container:
        """Return the answer with the error."""
        return error_answer(request.api_key, request.body, self.code)


class Faults:
    """
    The faults of a server.

    Args:
        faults: In this order, the first that applies counts.
        counts: Gets how often each was injected.
    """

    def __init__(self, faults: Iterable[Fault], counts: Counter[str]) -> None:
        self._faults = list(faults)
        self._counts = counts

    def take(self, request: ClientRequest) -> Fault | None:
        """Return the fault of a request; None for most."""
        for fault in self._faults:
            if fault.left != 0 and fault.filter.matches(RequestRow(request)):
                if fault.left is not None:
                    fault.left -= 1
                self._counts[fault.text] += 1
                return fault
        return None


class RequestRow:
    """A request as a row of a display filter; columns of responses are null."""

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
        """Return the body of the request as the client has sent it."""
        return self._request.message.body if kind == "request" else None

    def _topics(self) -> list[str]:
        message, facts = self._request.message, Facts()
        assert message.schema is not None
        collect(message.schema, message.api_version or 0, message.body or Container(), facts)
        return [str(topic) for topic in facts.topics]


def _number(text: str, action: str) -> int:
    if not text.isdecimal():
        raise _unknown(action)
    return int(text)


def _unknown(action: str) -> UsageError:
    return UsageError(
        "a fault is an error of Kafka, delay:MS, close or truncate, perhaps with ,times:N, "
        f"not {action!r}"
    )
