"""The keys by which exchanges can be grouped, and their columns."""

from __future__ import annotations

from collections.abc import Mapping

KEYS: Mapping[str, tuple[str, ...]] = {
    "minute": ("minute",),
    "second": ("second",),
    "client": ("client_id", "client"),
    "api": ("api",),
    "version": ("api_version",),
    "topic": ("topic",),
    "broker": ("broker",),
    "error": ("error",),
    "key_schema": ("key_schema",),
    "value_schema": ("value_schema",),
    "software": ("software_name", "software_version"),
    "principal": ("principal",),
    "listener": ("listener",),
    "security_protocol": ("security_protocol",),
}
"""Each key, and the columns that it fills."""
