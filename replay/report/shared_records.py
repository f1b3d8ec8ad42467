"""
The balance of logs to which several parts of a capture write.

Each part reports the offsets that the target gave to its records. Together they must not overlap,
and must fill the log. Without the target, unwritten offsets look like markers of transactions, so
they leave a log without a balance.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from replay.compare.ignore_rules import field_pattern
from replay.mapping.appended_ranges import AppendedRecords, Fault, Stretch
from replay.model.outcome import Verdict
from replay.model.row import Row

PRODUCE = "Produce"

_RECORDS = "records"


@dataclass(slots=True)
class SharedRecords:
    """
    Records written to a log by all parts of a capture.

    Attributes:
        names: The prefix of its name on the target.
        pass_number: The pass.
        topic: The captured topic.
        partition: The partition.
        end: The end of the log on the target, after the last part.
        unconfirmed: The number of records that may have been appended without a response.
        appended: The records that the target acknowledged.
    """

    names: str
    pass_number: int
    topic: str
    partition: int
    end: int = 0
    unconfirmed: int = 0
    appended: AppendedRecords = field(default_factory=AppendedRecords)

    def faults(self) -> Iterator[Fault]:
        """Yield records of two parts with the same offsets; of one part its report has them."""
        return (fault for fault in self.appended.faults() if fault.field == _RECORDS)

    def why_unbalanced(self) -> str:
        """Return the reason why the log could not be balanced; empty if it was."""
        excess = sum(max(each.live.size - each.expected, 0) for each in self.appended.excess())
        excess += max(self.end - self.appended.live_end, 0)
        if excess <= self.unconfirmed:
            return ""
        offsets = f"{excess:,} offset{'s' * (excess != 1)}"
        return f"no part wrote {offsets}: markers of transactions, or records of others"

    def difference_row(self, fault: Fault) -> Row:
        """Return a contradiction as a difference of a mostly unknown request."""
        unknown: dict[str, Any] = dict.fromkeys(
            ("connection", "client", "broker", "client_id", "api_version", "version_sent")
        )
        path = f"topic_data[{self.topic}].partition_data[{self.partition}].{fault.field}"
        return {
            "step": fault.step,
            "pass": self.pass_number,
            **unknown,
            "api": PRODUCE,
            "correlation_id": None,
            "request_time_ns": None,
            "request_packet": None,
            "request_place": "",
            "verdict": Verdict.DIFFERS.value,
            "missing_prerequisites": [],
            "accepted": "",
            "path": path,
            "captured": fault.captured,
            "replayed": fault.replayed,
        }

    def field_row(self, row: Row) -> Row:
        """Return the row by field for one difference."""
        pattern = field_pattern(PRODUCE, row["path"], by_setting=True)
        return {"field": pattern, "errors": "", "accepted": "", "count": 1, "examples": [row]}


def shared_logs(rows: Iterable[Row]) -> Iterator[SharedRecords]:
    """Yield each log with the writes of all parts."""
    by_log: defaultdict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        by_log[row["names"], row["pass"], row["topic"], row["partition"]].append(row)
    for log, parts in by_log.items():
        known = SharedRecords(*log)
        for part in parts:
            known.end = max(known.end, part["end"])
            known.unconfirmed += part["unconfirmed"]
        for stretch in sorted(Stretch(*each) for part in parts for each in part["stretches"]):
            known.appended.add(*stretch)
        yield known
