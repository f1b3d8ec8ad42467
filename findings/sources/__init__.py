"""The sources of findings, in the order of their findings within a rank."""

from findings.sources import (  # noqa: F401, I001  (each adds its sources to the registry, in this order)
    failure_sources,
    event_source,
    slow_source,
    conformance_source,
    advice_source,
    damage_source,
)
from findings.sources.finding_source import SOURCES

__all__ = ["SOURCES"]
