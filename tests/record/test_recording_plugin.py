"""The fixture `kafka_recording` in runs of pytest."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.record.support.recorded_cluster import broker_thread

ROOT = Path(__file__).parents[2]

TESTS = """
    from tests.serve.support.raw_client import RawClient

    def ask(recording, api, version, **values):
        with RawClient(recording.bootstrap) as client:
            return client.ask(api, version, **values)

    def test_topics(kafka_recording):
        recording = kafka_recording("topics.pcapng", to="127.0.0.1:{port}")
        assert len(ask(recording, "Metadata", 9, topics=[]).brokers) == 2
"""


def run(folder: Path, *options: str) -> str:
    plugins = ("-p", "serve.pytest_plugin", "-p", "record.recording_plugin")
    words = [sys.executable, "-m", "pytest", "-q", *plugins, str(folder)]
    done = subprocess.run(
        [*words, *options],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)},
        cwd=folder.parent,
    )
    return done.stdout + done.stderr


@pytest.mark.long  # runs pytest five times
def test_the_first_run_records_and_the_next_is_served(tmp_path: Path) -> None:
    with broker_thread({}) as broker:
        (tmp_path / "test_it.py").write_text(textwrap.dedent(TESTS).format(port=broker.port))
        assert "no recording, and --kafka-record is none" in run(tmp_path, "--kafka-record=none")
        assert "1 passed" in run(tmp_path)
        assert len(broker.requests) == 1
        assert "1 passed" in run(tmp_path, "--kafka-record=all")
        assert len(broker.requests) == 2
    assert "1 passed" in run(tmp_path)
    test = tmp_path / "test_it.py"
    test.write_text(test.read_text().replace('"Metadata", 9, topics=[]', '"DescribeAcls", 1'))
    assert "the capture lacks an equivalent request" in run(tmp_path)


def test_the_plugin_loads_its_packages_on_first_use() -> None:
    script = "import sys, record.recording_plugin; print([m for m in sys.modules if 'serve' in m])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "[]", done.stderr
