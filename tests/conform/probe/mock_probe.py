"""
Probes librdkafka's mock cluster by some rules, and prints findings: it may crash this process.

    python -m tests.conform.probe.mock_probe P01 P02
"""

from __future__ import annotations

import asyncio
import ctypes
import sys

from cluster.mock.librdkafka_mock import MockCluster
from conform.probe.probe_runner import probe_broker
from tests.conform.mutations import key_of
from tests.conform.probe.scripts import LIVE
from tests.waiting import PATIENCE_S


def main(ids: list[str]) -> None:
    """Probe, and print a line for each kind of finding."""
    with MockCluster() as mock:
        # The default delay of joins is 3 s.
        hurry = mock._library.rd_kafka_mock_group_initial_rebalance_delay_ms
        hurry.argtypes = (ctypes.c_void_p, ctypes.c_int32)
        hurry(mock._cluster, 0)
        outcome = asyncio.run(
            probe_broker(
                mock.addresses[0],
                [LIVE[each] for each in ids],
                timeout_s=PATIENCE_S,
                allow_writes=True,
            )
        )
        for kind in outcome.verdict:
            print(key_of(kind.first))


if __name__ == "__main__":
    main(sys.argv[1:])
