"""What stands out in a capture: one ranked list of errors, events, violations and advice."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from findings.public import findings
    from findings.registry.finding_report import FindingReport, Headline
    from findings.registry.ranked_finding import Rank, RankedFinding

__all__ = ["FindingReport", "Headline", "Rank", "RankedFinding", "findings"]

_PLACES = {
    "FindingReport": "findings.registry.finding_report",
    "Headline": "findings.registry.finding_report",
    "Rank": "findings.registry.ranked_finding",
    "RankedFinding": "findings.registry.ranked_finding",
    "findings": "findings.public",
}


def __getattr__(name: str) -> Any:
    """Load a public name from its module."""
    if name not in _PLACES:
        raise AttributeError(f"module 'findings' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PLACES[name]), name)
