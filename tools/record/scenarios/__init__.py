"""The scenarios, a file per client family."""

from __future__ import annotations

import importlib

_FAMILIES = (
    "librdkafka",
    "librdkafka_groups",
    "librdkafka_admin",
    "librdkafka_transactions",
    "broker_errors",
    "kafka_python",
    "kafka_python_versions",
    "aiokafka",
    "java_clients",
    "frameworks",
    "inside",
    "secure",
    "other_languages",
    "tls_versions",
    "sweep",
    "demo_capture",
)


def load() -> None:
    """Import all scenario modules, which register their scenarios."""
    for family in _FAMILIES:
        importlib.import_module(f"{__name__}.{family}")
