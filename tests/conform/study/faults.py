"""All faults of the study, and those missed by the rules."""

from __future__ import annotations

from tests.conform.study import faults_bytes, faults_data, faults_groups

FAULTS = [*faults_bytes.FAULTS, *faults_data.FAULTS, *faults_groups.FAULTS]

MISSED = {
    "offsets: ListOffsets the latest goes back": (
        "nothing before it in the capture shows how long that log was"
    ),
    "telemetry: another instance": (
        "a client keeps its id from broker to broker, so the capture need not show it"
    ),
    "metadata: leader epoch goes down": "no later answer in the capture is of that partition",
    "topic ids: an id that changes": (
        "a topic may have been made anew: one other id is a note, until the old one is used again"
    ),
}
"""By family and name, why."""
