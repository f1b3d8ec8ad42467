"""`kafkashark record` as a process."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dissector.cli.parsing.command_line import prepared
from dissector.cli.parsing.declarations import Command
from dissector.errors import DissectorError
from dissector.public import dissect
from record.cli import record
from tests.record.support.recorded_cluster import broker_thread
from tests.replay.support.scripted_broker import Scripted
from tests.serve.support.raw_client import RawClient
from tests.waiting import child, wait_until

COMMAND = (sys.executable, "-m", "kafkashark", "record")
ROOT = Path(__file__).parents[2]

ASK = """
import os, sys
from record.child_process import BOOTSTRAP_VARIABLES
from tests.serve.support.raw_client import RawClient
from tests.waiting import wait_until, child
with RawClient(os.environ["KAFKA_BOOTSTRAP_SERVERS"]) as client:
    print(len(client.ask("Metadata", 9, topics=[]).brokers), sys.argv[1:])
assert len({os.environ[name] for name in BOOTSTRAP_VARIABLES}) == 1
sys.exit(7)
"""


@pytest.fixture
def broker() -> Iterator[Scripted]:
    with broker_thread({}) as found:
        yield found


def run(broker: Scripted, *words: str) -> subprocess.CompletedProcess[str]:
    where = ("--to", f"127.0.0.1:{broker.port}", "--listen", "127.0.0.1:0")
    return subprocess.run([*COMMAND, *where, *words], capture_output=True, text=True, cwd=ROOT)


def test_a_program_runs_at_the_cluster_and_gives_its_status(
    broker: Scripted, tmp_path: Path
) -> None:
    file = tmp_path / "a.pcapng"
    done = run(broker, "-o", str(file), "--", sys.executable, "-c", ASK, "-o", "--", "x")
    assert done.stdout == "2 ['-o', '--', 'x']\n", done.stderr
    assert done.returncode == 7
    assert "1 request of 1 connection at 2 brokers" in done.stderr
    assert [each.api for each in dissect(str(file))] == ["Metadata"]


@pytest.mark.long
def test_a_program_that_is_missing_or_killed(broker: Scripted, tmp_path: Path) -> None:
    file = str(tmp_path / "a.pcapng")
    done = run(broker, "-o", file, "--", "no-such-program")
    assert done.returncode == 2
    assert "no-such-program: No such file or directory" in done.stderr
    assert "Traceback" not in done.stderr
    script = "import os; os.kill(os.getpid(), 9)"
    assert run(broker, "-o", file, "--", sys.executable, "-c", script).returncode == 128 + 9


def test_a_recording_is_readable_while_it_grows_and_after_a_kill(
    broker: Scripted, tmp_path: Path
) -> None:
    file = tmp_path / "a.pcapng"
    where = ("--to", f"127.0.0.1:{broker.port}", "--listen", "127.0.0.1:0")
    with child(
        subprocess.Popen([*COMMAND, *where, "-o", file], stderr=subprocess.PIPE, text=True)
    ) as process:
        assert process.stderr is not None
        address = process.stderr.readline().split()[-1]
        with RawClient(address) as client:
            client.ask("Metadata", 9, topics=[])
            wait_until(lambda: any(each.status == "answered" for each in dissect(str(file))))
            process.send_signal(signal.SIGKILL)
    assert [each.api for each in dissect(str(file))] == ["Metadata"]


@pytest.mark.long
def test_standard_output_is_a_capture_for_other_commands(broker: Scripted) -> None:
    done = subprocess.run(
        [
            *COMMAND,
            *("--to", f"127.0.0.1:{broker.port}", "--listen", "127.0.0.1:0", "-o", "-"),
            *("--", "sh", "-c", f"{sys.executable} -c '{ASK}' >&2"),
        ],
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    rows = subprocess.run(
        [sys.executable, "-m", "kafkashark", "pairs", "-", "-T", "ndjson"],
        input=done.stdout,
        stdout=subprocess.PIPE,
        check=True,
    )
    assert [json.loads(line)["api"] for line in rows.stdout.splitlines()] == ["Metadata"]


@pytest.mark.long
def test_a_full_disk_sets_the_status_and_clients_go_on(broker: Scripted) -> None:
    done = run(broker, "-o", "/dev/full", "--", sys.executable, "-c", ASK)
    assert done.stdout.startswith("2 ")
    assert done.returncode == 2
    assert "the recording is incomplete: No space left on device" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("-o x.pcapng", "--to"),
        ("--to a:1", "-o"),
        ("--to a:b -o /dev/null", "'a:b' is not an address"),
        ("--to a:1 -o /dev/null --fault api== close", "expected a value"),
        ("--to a:1 -o /dev/null --ring files:2", "--ring takes"),
        ("--to a:1 -o /dev/null --listener-tls-key k", "--listener-tls-certificate"),
        ("--to a:1 -o /dev/null --listen 192.0.2.1:1", "192.0.2.1:1: "),
    ],
)
def test_wrong_usage_is_one_line(words: str, said: str) -> None:
    with pytest.raises(DissectorError) as error:
        prepared(Command.of("record", record), words.split())()
    assert said in str(error.value)
    assert "\n" not in str(error.value)
