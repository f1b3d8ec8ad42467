"""All faults of the study."""

from __future__ import annotations

from tests.conform.study import faults_bytes, faults_data, faults_groups

FAULTS = [*faults_bytes.FAULTS, *faults_data.FAULTS, *faults_groups.FAULTS]
