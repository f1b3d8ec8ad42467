"""
Check a capture, or a live broker, against the rules of the Kafka protocol.

    from kafkashark import conform

    verdict = conform("a.pcap", ignore="Q")
    assert verdict.passed, verdict
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from conform.public import conform
    from conform.registry.rank import Severity
    from conform.registry.verdict import Finding, Verdict

__all__ = ["Finding", "Severity", "Verdict", "conform"]

_PLACES = {
    "Finding": "registry.verdict",
    "Severity": "registry.rank",
    "Verdict": "registry.verdict",
    "conform": "public",
}


def __getattr__(name: str) -> Any:
    """Load a public name at its first use: a command may need only a part of the package."""
    from importlib import import_module

    if name not in _PLACES:
        raise AttributeError(f"module 'conform' has no attribute {name!r}")
    return getattr(import_module(f"conform.{_PLACES[name]}"), name)
