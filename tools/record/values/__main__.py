"""
Records what real serializers write: `python -m tools.record.values [NAME...]`.

Each capture has a registry's connections too, so it can be read by its own schemas. A JSON file of
its name has what the programs wrote. The scene in Python needs
`confluent-kafka[schemaregistry,avro,json,protobuf]`.
"""

from __future__ import annotations

import gc
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tools.record.clusters import start
from tools.record.raw_packets import convert, count
from tools.record.scenario import KAFKA_4, Stage
from tools.record.sniff import capture, wait_until_quiet
from tools.record.values import confluent_serializers, other_serializers
from tools.record.values.registry_stand_in import Registry, running_registry

CAPTURES = Path(__file__).parents[3] / "captures" / "values"

SCENES: dict[str, Callable[[Stage, Registry], dict[str, dict[str, Any]]]] = {
    "confluent-python": confluent_serializers.play,
    "apicurio-java": other_serializers.play_java,
    "franz-go-sr": other_serializers.play_franz,
}


def main(names: list[str]) -> int:
    """Record the scenes of these names, by default all."""
    CAPTURES.mkdir(exist_ok=True)
    with start(KAFKA_4) as running:
        for name in names or SCENES:
            with tempfile.TemporaryDirectory() as folder, running_registry() as registry:
                raw = Path(folder) / f"{name}.pcap"
                ports = (*running.ports, registry.port)
                stage = Stage(name, running.bootstrap, ports, Path(folder), running.kafka)
                wait_until_quiet(running.ports)
                with capture(raw, ports):
                    expected = SCENES[name](stage, registry)
                    gc.collect()
                    wait_until_quiet(running.ports)
                made = convert(raw, "pcap")
                (CAPTURES / made.name).write_bytes(made.read_bytes())
                text = json.dumps(expected, indent=1, ensure_ascii=False)
                (CAPTURES / f"{name}.json").write_text(text + "\n", encoding="utf-8")
                print(f"{made.name:30} {count(made)} packets, {made.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
