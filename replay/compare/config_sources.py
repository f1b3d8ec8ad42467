"""Sources of settings in responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
