"""A value of a request that was changed for the cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Change:
    """
    A value that differs between the captured request and the sent one.

    Attributes:
        path: The path of the field in the body: `topic_data[0].partition_data[0].index`.
        role: The meaning of the field: the value of a `Role`.
        captured: The captured value.
        sent: The value that was sent.
        why: The rule that chose it, if there are several: `translated`, `earliest`, ...; or empty.
    """

    path: str
    role: str
    captured: Any
    sent: Any
    why: str = ""
