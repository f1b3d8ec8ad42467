"""Columns of segments taken apart and put together."""

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


def concatenate(pieces: Sequence[Segments]) -> Segments:
    """Return segments one behind another, and their bytes likewise."""
    if len(pieces) == 1:
        return pieces[0]
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(each, name) for each in pieces]) for name in _COLUMNS
    }
    shifts = [0, *accumulate(len(each.data) for each in pieces[:-1])]
    columns["start"] = np.concatenate(
        [each.start + shift for each, shift in zip(pieces, shifts, strict=True)]
    )
    return Segments(data=np.concatenate([each.data for each in pieces]), **columns)
