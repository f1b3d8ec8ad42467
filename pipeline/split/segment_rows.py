"""Selection and concatenation of rows of `Segments`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from itertools import accumulate
from typing import Any

import numpy as np

from dissector.capture.columns import Segments

_COLUMNS = [each.name for each in fields(Segments) if each.name not in ("data", "is_live")]


def select_rows(segments: Segments, rows: Any) -> Segments:
    """Return some rows."""
    columns = {name: getattr(segments, name)[rows] for name in _COLUMNS}
    return Segments(data=segments.data, **columns)


def concatenate(batches: Sequence[Segments]) -> Segments:
    """Concatenate segments and their bytes."""
    if len(batches) == 1:
        return batches[0]
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(each, name) for each in batches]) for name in _COLUMNS
    }
    shifts = [0, *accumulate(len(each.data) for each in batches[:-1])]
    columns["start"] = np.concatenate(
        [each.start + shift for each, shift in zip(batches, shifts, strict=True)]
    )
    return Segments(data=np.concatenate([each.data for each in batches]), **columns)
