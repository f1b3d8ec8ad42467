"""Serializers in Java and Go: Apicurio's, Connect's converter to JSON, and franz-go's `sr`."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.broker.artifacts import MissingError, cache_folder
from tools.record.scenario import Stage
from tools.record.scenarios.other_languages import play_go
from tools.record.values.registry_stand_in import Registry

_PROGRAMS = Path(__file__).parents[1] / "programs"
_PATIENCE_S = 300

_ORDERS = [
    {"id": 1, "customer": "Ann", "items": ["lamp"]},
    {"id": -(2**40), "customer": None, "items": ["chair", "tisch"]},
]


def play_java(stage: Stage, registry: Registry) -> dict[str, dict[str, Any]]:
    """Produce and consume with Apicurio's serdes, and changes by Connect's converter."""
    kafka = stage.cluster.jars.tools
    program = str(_PROGRAMS / "Serializers.java")
    java, *rest = kafka.java(program, stage.bootstrap, stage.topic(), registry.url, heap_mb=256)
    at = rest.index("-cp") + 1
    rest[at] = f"{kafka.classpath}{os.pathsep}{_apicurio()}{os.sep}*"
    _run([java, *rest])
    expected = {}
    for way in ("eight-bytes", "four-bytes", "headers"):
        topic = f"{stage.topic()}.{way}"
        expected[topic] = {"format": "avro", "schema": f"{topic}-value v1", "values": _ORDERS}
    expected[f"{stage.topic()}.changes"] = {
        "format": "debezium+connect+json",
        "schema": "shop.orders.Envelope",
        "values": _changes(),
    }
    return expected


def _changes() -> list[dict[str, Any]]:
    source = {"connector": "postgresql", "table": "orders", "lsn": 24023128}
    new, paid = {"id": 5, "state": "NEW"}, {"id": 5, "state": "PAID"}
    return [
        {"before": before, "after": after, "source": source, "op": op, "ts_ms": 1700000000000}
        for before, after, op in ((None, new, "c"), (new, paid, "u"), (paid, None, "d"))
    ]


def play_franz(stage: Stage, registry: Registry) -> dict[str, dict[str, Any]]:
    """Produce and consume with franz-go's client of registries."""
    play_go("franzsr", stage.bootstrap, stage.topic(), registry.url)
    at = "2023-11-14T22:13:20.003Z"
    orders = [{**each, "at": at} for each in _ORDERS]
    messages = [
        {"id": 5, "items": ["lamp"]},
        {"text": "broken"},
        {"note": {"text": "broken"}, "amount": 12.5},
    ]
    formats = {"avro": orders, "json-schema": orders, "protobuf": messages}
    return {
        f"{stage.topic()}.{name.partition('-')[0]}": {
            "format": name,
            "schema": f"{stage.topic()}.{name.partition('-')[0]}-value v1",
            "values": values,
        }
        for name, values in formats.items()
    }


def _apicurio() -> Path:
    """Return the folder of Apicurio's serdes, which Maven downloads the first time."""
    pom = _PROGRAMS / "apicurio" / "pom.xml"
    folder = cache_folder() / f"apicurio-{hashlib.sha256(pom.read_bytes()).hexdigest()[:12]}"
    if not folder.exists():
        if shutil.which("mvn") is None:
            raise MissingError("mvn is not installed")
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as name:
            made = Path(name) / "jars"
            goal = ["dependency:copy-dependencies", f"-DoutputDirectory={made}"]
            _run(["mvn", "-q", "-B", "-f", str(pom), *goal])
            with suppress(OSError):  # another process was faster
                made.rename(folder)
    return folder


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {(done.stdout + done.stderr)[-3000:]}")
