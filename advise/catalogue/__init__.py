"""All advices: what they are about, why that costs, which settings change it."""

from __future__ import annotations

from advise.catalogue import (
    connection_catalogue,
    consumer_catalogue,
    group_catalogue,
    producer_catalogue,
    version_catalogue,
)
from advise.registry.advice import ADVICES

__all__ = [
    "ADVICES",
    "connection_catalogue",
    "consumer_catalogue",
    "group_catalogue",
    "producer_catalogue",
    "version_catalogue",
]
