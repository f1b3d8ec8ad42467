"""
Recordings of `kafkashark record`, beside the captures: `python -m tools.record.recordings`.

Each is what passed between clients and a real broker while a scene was played.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from record.public import Recorder
from tests.broker.kafka_cluster import running
from tests.broker.server_properties import Shape
from tools.record.scenario import KAFKA_4, KAFKA_39, Stage
from tools.record.scenarios.librdkafka_groups import group_rebalance
from tools.record.scenarios.librdkafka_transactions import transactions

RECORDINGS = Path(__file__).parents[2] / "captures" / "recordings"

SCENES: dict[str, tuple[Shape, Callable[[Stage], None]]] = {
    "kafka4-transactions": (KAFKA_4, transactions),
    "kafka39-group": (KAFKA_39, group_rebalance),
}
"""Of each recording, the cluster and what clients do."""


def main(names: list[str]) -> int:
    """Record the scenes of these names, by default all."""
    RECORDINGS.mkdir(exist_ok=True)
    for name, (shape, play) in SCENES.items():
        if names and name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder, running(shape) as cluster:
            raw = Path(folder) / "recording.pcapng"
            with Recorder(raw, to=cluster.bootstrap()) as recorder:
                play(Stage(name, recorder.bootstrap, (), Path(folder), cluster))
            target = RECORDINGS / f"{name}.pcapng.gz"
            target.write_bytes(gzip.compress(raw.read_bytes(), 9, mtime=0))
            print(f"{target.name:40} {target.stat().st_size / 1000:8.1f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
