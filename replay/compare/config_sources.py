"""Settings in responses: their sources, and defaults that releases have changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_DEFAULTS = {
    "task_offset_interval_ms": frozenset({0, 60_000}),
}
"""
Field of a response with a setting of the broker -> its defaults in releases of Kafka.

Source: StreamsGroupHeartbeatResponse.json; GroupCoordinatorConfig.java (Kafka 4.4 has
group.streams.task.offset.interval.ms, 60 s by default; before, brokers sent 0).
"""


def are_defaults(field: str, value: Any, other: Any) -> bool:
    """Return whether both values of a field are defaults, of different releases."""
    defaults = _DEFAULTS.get(field, frozenset())
    return isinstance(value, int) and isinstance(other, int) and {value, other} <= defaults


_DEFAULT, _DEFAULT_OF_CLUSTER = 5, 3


def is_default_setting(setting: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """
    Return whether two structs are the same setting, with its default value on both sides.

    Source: ConfigSource of DescribeConfigs v1+ and CreateTopics v5+ (KIP-226). Brokers with
    eligible
    leader replicas (KIP-966) store the default of min.insync.replicas as a default of the cluster:
    ConfigurationControlManager.maybeGenerateElrSafetyRecords.
    """
    sources = {each.get("config_source", each.get("source")) for each in (setting, other)}
    if sources == {_DEFAULT, _DEFAULT_OF_CLUSTER}:
        return bool(setting.get("value") == other.get("value"))
    is_default = [each.get("is_default") is True for each in (setting, other)]
    return sources == {_DEFAULT} or all(is_default)
