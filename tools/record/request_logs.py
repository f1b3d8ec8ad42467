"""
Request logs of real brokers, beside the captures: `python -m tools.record.request_logs`.

Each is what a broker logged while a scene was played, and the lines of others around it.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.broker.kafka_cluster import Cluster, Node, running
from tests.broker.server_properties import Shape
from tools.record.scenario import KAFKA_4, KAFKA_39, Stage
from tools.record.scenarios.broker_errors import SECURE_4
from tools.record.scenarios.librdkafka_groups import group_rebalance
from tools.record.scenarios.librdkafka_transactions import transactions
from tools.record.scenarios.secure import librdkafka_sasl
from tools.record.sweep.client import SweepClient

CAPTURES = Path(__file__).parents[2] / "captures"

_INCREMENTAL_ALTER_CONFIGS, _BROKER_LOGGER = 44, 8
_SET, _DELETE = 0, 1
_SETTLED_S = 1.0

SCENES: dict[str, tuple[Shape, Callable[[Stage], None]]] = {
    "kafka4-request-log": (KAFKA_4, transactions),
    "kafka39-request-log": (KAFKA_39, group_rebalance),
    "kafka4-sasl-request-log": (SECURE_4, librdkafka_sasl),
}
"""Of each log, the cluster and what clients do."""


@contextmanager
def logging_requests(cluster: Cluster, level: str = "TRACE") -> Iterator[None]:
    """Let all brokers log requests in the block, as `kafka-configs.sh` does without a restart."""
    _set_logger(cluster, _SET, level)
    yield
    _set_logger(cluster, _DELETE, None)


@contextmanager
def logged_requests(node: Node, to: Path) -> Iterator[None]:
    """Write what a broker logs in the block to a file."""
    begin = node.log.stat().st_size
    yield
    time.sleep(_SETTLED_S)
    with node.log.open("rb") as file:
        file.seek(begin)
        to.write_bytes(file.read())


def _set_logger(cluster: Cluster, operation: int, level: str | None) -> None:
    config = {"name": "kafka.request.logger", "config_operation": operation, "value": level}
    for node in cluster.nodes:
        with SweepClient(node.address.at("PLAINTEXT")) as client:
            answer = client.request(
                _INCREMENTAL_ALTER_CONFIGS,
                1,
                resources=[
                    {
                        "resource_type": _BROKER_LOGGER,
                        "resource_name": str(node.address.node_id),
                        "configs": [config],
                    }
                ],
                validate_only=False,
            )
        assert answer is not None
        assert all(each.error_code == 0 for each in answer.responses), answer


def main(names: list[str]) -> int:
    """Record the logs of these names, by default all."""
    for name, (shape, play) in SCENES.items():
        if names and name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder, running(shape) as cluster:
            raw = Path(folder) / "node.log"
            stage = Stage(name, cluster.bootstrap(), (), Path(folder), cluster)
            with logging_requests(cluster), logged_requests(cluster.nodes[0], raw):
                play(stage)
            target = CAPTURES / f"{name}.log.gz"
            # Lines of others name the folders of this machine.
            lines = raw.read_bytes().splitlines(keepends=True)
            kept = b"".join(line for line in lines if cluster.folder.name.encode() not in line)
            target.write_bytes(gzip.compress(kept, 9, mtime=0))
            print(f"{target.name:40} {target.stat().st_size / 1000:8.1f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
