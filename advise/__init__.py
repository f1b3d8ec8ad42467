"""
Advice on the use of Kafka, from a capture: what is wrong with clients that break no rule.

    from kafkashark import advise

    report = advise("a.pcap")
    print(report)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from advise.public import advise
    from advise.registry.advice_report import AdviceReport

__all__ = ["AdviceReport", "advise"]

_PLACES = {"AdviceReport": "registry.advice_report", "advise": "public"}


def __getattr__(name: str) -> Any:
    """Load a public name at its first use."""
    from importlib import import_module

    if name not in _PLACES:
        raise AttributeError(f"module 'advise' has no attribute {name!r}")
    return getattr(import_module(f"advise.{_PLACES[name]}"), name)
