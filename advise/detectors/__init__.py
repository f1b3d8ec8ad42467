"""A function for each advice, which looks for it in the evidence."""

from __future__ import annotations

from advise.detectors import (
    connection_detectors,
    consumer_detectors,
    group_detectors,
    producer_detectors,
    version_detectors,
)
from advise.detectors.subject_judge import DETECTORS

__all__ = [
    "DETECTORS",
    "connection_detectors",
    "consumer_detectors",
    "group_detectors",
    "producer_detectors",
    "version_detectors",
]
