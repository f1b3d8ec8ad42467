"""Series of metrics: a bounded number of them, with their values in arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.engine.tables.exchange_table import Ints
from dissector.view.text.escape import escaped
from exporter.metric_families import OTHER, Family

MAX_LABEL = 120
"""Maximum length of a label; longer names are cut."""

UNKNOWN = "unknown"
"""The label of what messages do not name."""

Label: TypeAlias = tuple[str, ...]


class Sample(NamedTuple):
    """
    A series at a point in time.

    Attributes:
        label: The values of its labels.
        counts: The number in each bucket, the last above all bounds; of other kinds one value.
        total: The sum of all values of a histogram, in the metric's unit.
    """

    label: Label
    counts: tuple[int, ...]
    total: float = 0.0


class FamilySamples(NamedTuple):
    """The series of a family at a point in time."""

    family: Family
    samples: Sequence[Sample]


Snapshot: TypeAlias = Sequence[FamilySamples]


class LabelRows:
    """
    Rows of arrays for labels; those beyond a limit share a row.

    Args:
        width: Number of labels of a series.
        most: Maximum number of rows with a label of their own.

    Attributes:
        labels: The label of each row.
    """

    def __init__(self, width: int, most: int) -> None:
        self.labels: list[Label] = []
        self._most = most
        self._other = (OTHER,) * width
        self._rows: dict[Label, int] = {}

    def row_of(self, values: Iterable[object]) -> int:
        """Return the row of some values."""
        label = tuple(label_text(each) for each in values)
        found = self._rows.get(label)
        if found is None:
            if len(self.labels) >= self._most and label != self._other:
                return self.row_of(self._other)
            found = self._rows[label] = len(self.labels)
            self.labels.append(label)
        return found

    def rows_of(self, labels: Sequence[Sequence[object]], codes: Ints) -> Ints:
        """Return the row of each code; codes are indices of labels."""
        rows = np.zeros(len(labels), np.int64)
        for code in np.flatnonzero(np.bincount(codes, minlength=len(labels))).tolist():
            rows[code] = self.row_of(labels[code])
        return rows[codes]


class Series:
    """The values of a family, in the rows of `LabelRows`."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self._bounds = np.array(family.bounds, np.int64)
        self._counts = np.zeros((0, len(family.bounds) + 1), np.int64)
        self._totals: NDArray[np.float64] = np.zeros(0)

    def count(self, rows: Ints) -> None:
        """Count one for each row given."""
        self._grow(rows)
        self._counts[:, 0] += np.bincount(rows, minlength=len(self._counts))

    def observe(self, rows: Ints, values: Ints) -> None:
        """Add a value of a histogram for each row given."""
        self._grow(rows)
        height, width = self._counts.shape
        cells = rows * width + np.searchsorted(self._bounds, values)
        self._counts += np.bincount(cells, minlength=height * width).reshape(height, width)
        self._totals += np.bincount(rows, values / self.family.unit, minlength=height)

    def samples(self, labels: Sequence[Label]) -> list[Sample]:
        """Return the values of all rows that have one."""
        rows = zip(labels, self._counts.tolist(), self._totals.tolist(), strict=False)
        return [Sample(label, tuple(counts), total) for label, counts, total in rows if any(counts)]

    def _grow(self, rows: Ints) -> None:
        missing = int(rows.max(initial=-1)) + 1 - len(self._counts)
        if missing > 0:
            self._counts = np.pad(self._counts, ((0, missing), (0, 0)))
            self._totals = np.pad(self._totals, (0, missing))


def label_text(value: object) -> str:
    """Return a label: printable, and of bounded length."""
    text = UNKNOWN if value is None or value == "" else str(value)
    shown = escaped(text[:MAX_LABEL])
    return (
        shown if len(shown) <= MAX_LABEL and len(text) <= MAX_LABEL else f"{shown[:MAX_LABEL]}..."
    )


def merged(samples: Iterable[Sample], shown: Callable[[Label], Label]) -> list[Sample]:
    """Return samples with other labels, those of equal labels as one: scrapes refuse two."""
    found: dict[Label, Sample] = {}
    for each in samples:
        label = shown(each.label)
        before = found.get(label)
        counts, total = each.counts, each.total
        if before is not None:
            counts = tuple(map(sum, zip(counts, before.counts, strict=True)))
            total += before.total
        found[label] = Sample(label, counts, total)
    return list(found.values())
