"""Where settings in answers of brokers come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_DEFAULT, _DEFAULT_OF_CLUSTER = 5, 3


def is_default_setting(setting: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """
    Tell whether two structs are one setting that nobody has set on either side.

    Source: ConfigSource of DescribeConfigs v1+ and CreateTopics v5+ (KIP-226). Brokers with
    eligible leader replicas (KIP-966) write the default of min.insync.replicas down as one of the
    cluster: ConfigurationControlManager.maybeGenerateElrSafetyRecords.
    """
    sources = {each.get("config_source", each.get("source")) for each in (setting, other)}
    if sources == {_DEFAULT, _DEFAULT_OF_CLUSTER}:
        return bool(setting.get("value") == other.get("value"))
    is_default = [each.get("is_default") is True for each in (setting, other)]
    return sources == {_DEFAULT} or all(is_default)
