"""The tools: their parameters, and the commands that answer them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

from pydantic import Field

from assistant.bounded_answer import MAX_BYTES, answer_of
from assistant.capture_folder import CaptureFolder
from assistant.command_rows import command_rows, command_text
from dissector.errors import UsageError
from dissector.view.text.escape import quoted

Captures = Annotated[
    list[str],
    Field(description="Paths from `captures`; several are parts of one capture."),
]
Filter = Annotated[
    str,
    Field(
        description="Display filter, such as `api == Produce and error` or `latency_ms > 100 and "
        "topic == orders`; empty for all. `explain` with `filters` has the syntax."
    ),
]
Rows = Annotated[int, Field(description="Maximum number of rows.", ge=1, le=200)]
Columns = Annotated[
    list[str],
    Field(
        description="Columns or fields of bodies, such as `packet`, `latency_ms`, "
        "`request.group_id`; empty for all columns. Fewer columns leave room for more rows."
    ),
]
KeyLog = Annotated[
    str, Field(description="Path of a TLS key log from `captures`; empty without one.")
]
Name = Annotated[
    str,
    Field(
        description="A rule (`F03`), an advice (`tiny-batches`), an API (`Fetch`), or one of "
        "`rules`, `advices`, `columns`, `filters`."
    ),
]

_RULE = re.compile(r"[A-Za-z]\d\d")
_ADVICE = re.compile(r"[a-z]+(-[a-z0-9]+)+")
_API = re.compile(r"[A-Z][A-Za-z]+")
_LISTS = {
    "rules": ("conform", "--list"),
    "advices": ("advise", "--list"),
    "columns": ("pairs", "--list-columns"),
}

_FILTERS = """\
Display filters, as Wireshark's: COMPARISON and COMPARISON, or, not, parentheses.
Operators: == != < <= > >= in {a, b} contains matches; a bare name: it exists.
Names: columns of `pairs` (explain `columns`), and fields of bodies: request.acks,
response.throttle_time_ms, request.topic_data.name. In `records` also topic, partition, offset, key,
value, headers, and fields of decoded values: value.user.id.
Functions: len() lower() upper() count() any() all(). Slices: key[0:4].
Times: frame.time > "2026-11-21 09:46:35Z".
Examples: api == Produce and latency_ms > 100
error and topic == orders
client_id matches "^billing" and not api in {Heartbeat, Fetch}
records: topic == orders and value contains "lamp"
"""


class CaptureTools:
    """
    The tools, whose docstrings assistants read.

    Args:
        folder: The files that may be read.
    """

    def __init__(self, folder: CaptureFolder) -> None:
        self._folder = folder

    def all(self) -> Sequence[Callable[..., str]]:
        """Return the functions of all tools."""
        return (
            self.captures,
            self.summary,
            self.findings,
            self.pairs,
            self.records,
            self.timeline,
            self.groups,
            self.explain,
        )

    def captures(self, limit: Rows = 100) -> str:
        """List the files that can be read: path, size in bytes, time of the last change."""
        return answer_of(self._folder.files(), limit)

    def summary(
        self, captures: Captures, filter: Filter = "", limit: Rows = 20, keylog: KeyLog = ""
    ) -> str:
        """Return response times, errors and bytes by API, client, topic and broker.

        The last row, `capture`, says how complete the capture is. `limit` is for each section.
        """
        words = ["stats", *self._common(captures, filter, keylog), "-c", str(limit)]
        return answer_of(self._rows(words), 5 * limit)

    def findings(
        self, captures: Captures, filter: Filter = "", limit: Rows = 30, keylog: KeyLog = ""
    ) -> str:
        """Return what stands out: errors, slow calls, causes, misuse, violations of the protocol.

        Begin with this. The worst come first; each has a filter for its exchanges.
        """
        words = ["findings", *self._common(captures, filter, keylog), "-c", str(limit)]
        return answer_of(self._rows(words), limit + 20)

    def pairs(
        self,
        captures: Captures,
        filter: Filter = "",
        columns: Columns = [],  # noqa: B006 (JSON's default; never changed)
        limit: Rows = 50,
        keylog: KeyLog = "",
    ) -> str:
        """Return a row for each exchange: a request with its response, times and errors."""
        words = ["pairs", *self._common(captures, filter, keylog), *_chosen(columns)]
        return answer_of(self._rows([*words, "-c", str(limit)]), limit)

    def records(
        self,
        captures: Captures,
        filter: Filter = "",
        columns: Columns = [],  # noqa: B006
        limit: Rows = 20,
        keylog: KeyLog = "",
    ) -> str:
        """Return a row for each record that was produced or fetched; long values are cut."""
        words = ["records", *self._common(captures, filter, keylog), *_chosen(columns)]
        return answer_of(self._rows([*words, "-c", str(limit)]), limit)

    def timeline(
        self, captures: Captures, filter: Filter = "", limit: Rows = 50, keylog: KeyLog = ""
    ) -> str:
        """Return events of groups, producers, transactions, connections, with their causes."""
        words = ["timeline", *self._common(captures, filter, keylog), "-c", str(limit)]
        return answer_of(self._rows(words), limit)

    def groups(
        self, captures: Captures, filter: Filter = "", limit: Rows = 50, keylog: KeyLog = ""
    ) -> str:
        """Return consumer groups, their members and partitions, committed offsets and lag."""
        words = ["groups", *self._common(captures, filter, keylog), "-c", str(limit)]
        return answer_of(self._rows(words), 3 * limit)

    def explain(self, name: Name) -> str:
        """Explain a rule, an advice, the fields of an API, columns, or the syntax of filters."""
        if name == "filters":
            return _FILTERS
        if name in _LISTS:
            return self._text(_LISTS[name])
        if _RULE.fullmatch(name):
            return self._text(("conform", "--explain", name))
        if _ADVICE.fullmatch(name):
            return self._text(("advise", "--explain", name))
        if _API.fullmatch(name):
            return self._text(("schema", name))
        raise UsageError(f"{quoted(name)} is neither a rule, an advice nor an API")

    def _rows(self, words: Sequence[str]) -> Iterator[Any]:
        return command_rows(words, self._folder.root)

    def _text(self, words: Sequence[str]) -> str:
        return command_text(words, self._folder.root, MAX_BYTES)

    def _common(self, captures: Sequence[str], filter: str, keylog: str) -> list[str]:
        """Return the words that all commands take."""
        words: list[Any] = [*self._folder.paths(captures), "-T", "ndjson"]
        if filter:
            words.append(f"--filter={filter}")
        if keylog:
            words += ["--keylog", *self._folder.paths([keylog])]
        return words


def _chosen(columns: Sequence[str]) -> list[str]:
    return [f"--columns={','.join(columns)}"] if columns else []
