"""Differences of responses between Kafka releases, independent of requests."""

from __future__ import annotations

import re

from replay.compare.ignore_rules import field_pattern
from replay.report.report import Report

OF_THE_RELEASE = ("ApiVersions",)
"""What is noise where a capture of another release is played: each one offers its own."""

OFFERED = {
    "ApiVersions.api_keys[*]",
    "ApiVersions.api_keys[*].min_version",
    "ApiVersions.api_keys[*].max_version",
    "ApiVersions.supported_features[*]",
    "ApiVersions.supported_features[*].min_version",
    "ApiVersions.supported_features[*].max_version",
    "ApiVersions.finalized_features[*]",
    "ApiVersions.finalized_features[*].min_version_level",
    "ApiVersions.finalized_features[*].max_version_level",
}
"""APIs, versions and features: KIP-896 removed old ones, each release adds some."""

CONFIGURED = {
    ("message.format.version", ""),
    ("message.downconversion.enable", ""),
    ("message.timestamp.difference.max.ms", ""),
    ("message.timestamp.after.max.ms", "value"),
    ("min.insync.replicas", "config_source"),
    ("errors.deadletterqueue.group.enable", ""),
    ("max.decompressed.message.bytes", ""),
    ("remote.copy.lag.bytes", ""),
    ("remote.copy.lag.ms", ""),
}
"""
Setting of a topic and what of it differs. 4.0 removed the first three: what only older formats of
records needed (KIP-724), and what two settings took the place of (KIP-937). The fourth got another
default (KIP-1030). The fifth one is a setting of the whole cluster where leaders may be eligible
replicas (KIP-966), which is so from 4.1 on. The others came with 4.4. Source: Kafka's notes on
upgrading to 4.0, its page on Eligible Leader Replicas.
"""

NEW_ANSWERS = {"StreamsGroupHeartbeat.task_offset_interval_ms"}
"""Fields that older releases leave at 0; 4.4 has group.streams.task.offset.interval.ms for it."""

_CONFIG = re.compile(r"(?:CreateTopics|DescribeConfigs)\..*\.configs\[([^]]*)\](?:\.(\w+))?")


def beside_releases(report: Report) -> set[str]:
    """Return the patterns of all differences not explained by releases."""
    found = set()
    for each in report.differences():
        path = f"{each['api']}.{each['path']}"
        setting = _CONFIG.fullmatch(path)
        if setting is None or (setting[1], setting[2] or "") not in CONFIGURED:
            found.add(field_pattern(*path.split(".", 1)))
    return found - OFFERED - NEW_ANSWERS
