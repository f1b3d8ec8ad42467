"""
The questions of an incident day, each answered by one command.

Each is asked twice, as at work: `cat a.pcap | kafkashark ... - | less`, with real pipes, and in a
terminal of 120 columns.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shlex
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import default_frames
from tests.corpus import FOLDER
from tests.dissector.capture.handmade_packets import ACK, SYN
from tests.tcp_captures import START_NS, Wire, pcap_file
from tests.waiting import PATIENCE_S, child

WIDTH = 120
MS = 1_000_000
HEARTBEAT = 12


@dataclass(frozen=True)
class Question:
    """
    A question of the day.

    Attributes:
        text: The question.
        command: The one command that answers it; CAPTURE and FOLDER are replaced.
        answer: Patterns of the answer, in their order; spaces match any white space.
        absent: Patterns that no line of the answer has.
        capture: A file of `captures/`; without one that of `far_and_busy`.
        reads_twice: Whether the command reads its input several times, so never from a pipe.
    """

    text: str
    command: str
    answer: tuple[str, ...]
    absent: tuple[str, ...] = ()
    capture: str = "demo.pcap"
    reads_twice: bool = False


QUESTIONS = [
    Question(
        "Who uses this topic, with which library?",
        "stats CAPTURE --topics -Y 'topic == demo.orders'",
        ("demo.orders Fetch 16 billing-1", "demo.orders Produce 10 shop"),
        ("demo.ledger", "demo.metrics", "__consumer_offsets"),
    ),
    Question(
        "Is the network slow, or the broker?",
        "stats CAPTURE --network",
        (
            "far 10.0.0.1 10.0.0.2:9092 10 0 0 230.000 230.000 230.000 10.000 10.000 10.000",
            "near 10.0.0.1 10.0.0.2:9092 10 0 0 2.000 2.000 2.000 238.000 238.000 238.000",
        ),
        capture="",
    ),
    Question(
        "Why does the group rebalance?",
        "timeline CAPTURE --kind group",
        ("rebalance: session timeout", "second was silent for its session timeout of 6000 ms"),
        capture="kafka4-static-members.pcap",
    ),
    Question(
        "Who fenced this producer?",
        "timeline CAPTURE --kind transaction",
        ("fenced: new producer", "AddPartitionsToTxn of older .* newer at 127.0.0.1 initialized"),
        capture="kafka4-librdkafka-fenced.pcap",
    ),
    Question(
        "Since when is which partition behind?",
        "groups CAPTURE --group billing --interval 1",
        (
            "2026-11-21 09:46:35 billing 0",
            "2026-11-21 09:46:38 billing 56 .*no member; grows by 18.7/s since 09:46:35",
            "demo.orders 0.* stuck at offset 72 and grows by 16.7/s since 09:46:35",
        ),
        ("audit",),
    ),
    Question(
        "Was this record produced, and who has read it?",
        "records CAPTURE -Y 'headers contains \"trace=000000000000003c\" and offset == 36'"
        " --columns packet,client_id,api,topic,partition,offset,key,headers",
        (
            "178 shop Produce demo.orders 0 36 customer-1 trace=000000000000003c",
            "183 billing-1 Fetch demo.orders 0 36 customer-1 trace=000000000000003c",
        ),
    ),
    Question(
        "Which client gets which errors?",
        "stats CAPTURE --by error,api,client",
        (
            "INVALID_TOPIC_EXCEPTION Metadata kafka4-errors .* 5 5",
            "UNKNOWN_TOPIC_OR_PARTITION OffsetCommit kafka4-errors .* 3 3",
        ),
        capture="kafka4-errors.pcap",
    ),
    Question(
        "What can the vendor have?",
        "export CAPTURE --redact -o FOLDER/shared.pcapng",
        ("281 exchanges on 44 connections: 1,163 of 1,163 packets",),
        reads_twice=True,
    ),
    Question(
        "What is in the TLS traffic?",
        f"stats CAPTURE --by api --keylog {FOLDER}/kafka4-java-tls13.keylog",
        ("Produce 6 0 0", "decrypted connections 4"),
        capture="kafka4-java-tls13.pcap.gz",
    ),
]


def far_and_busy() -> bytes:
    """
    Return a capture of two clients, whose ten requests are answered after 240 ms each.

    `far` is 230 ms away from the broker, which needs 10 ms; `near` is 2 ms away from it, and waits
    238 ms for it.
    """
    wire = Wire()
    for port, client_id, rtt_ms in ((50000, "far", 230), (50001, "near", 2)):
        connection = wire.connect(port)
        sent = [(0, 0, SYN, b""), (rtt_ms, 1, SYN | ACK, b""), (rtt_ms, 0, ACK, b"")]
        for number in range(10):
            at_ms = 1000 + 500 * number
            sent += [
                (at_ms, 0, ACK, default_frames.request(HEARTBEAT, 4, number, client_id)),
                (at_ms + 240, 1, ACK, default_frames.response(HEARTBEAT, 4, number)),
            ]
        for at_ms, side, flags, data in sent:
            wire.now_ns = START_NS + at_ms * MS
            connection.send_segment(side, flags, data, before=bool(flags & SYN))
    return pcap_file(sorted(wire.packets, key=lambda packet: packet.time_ns))


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("incident") / "far.pcap"
    path.write_bytes(far_and_busy())
    return path


def words_of(question: Question, capture: Path | str, folder: Path) -> list[str]:
    line = question.command.replace("FOLDER", str(folder)).replace("CAPTURE", str(capture))
    return [sys.executable, "-m", "kafkashark", *shlex.split(line)]


def in_pipes(question: Question, capture: Path, folder: Path) -> str:
    """Ask with the capture from a pipe and the answer into one."""
    with child(subprocess.Popen(["cat", str(capture)], stdout=subprocess.PIPE)) as source:
        done = subprocess.run(
            words_of(question, capture if question.reads_twice else "-", folder),
            stdin=source.stdout,
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return (done.stdout + done.stderr).decode()


def in_a_terminal(question: Question, capture: Path, folder: Path) -> str:
    """Ask in a terminal of 120 columns; no row is wider."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, WIDTH, 0, 0))
    environment = {**os.environ, "TERM": "xterm", "NO_COLOR": "1"}
    environment.pop("COLUMNS", None)  # it would replace the width of the terminal
    words = words_of(question, capture, folder)
    shown = bytearray()
    with child(
        subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    ) as process:
        os.close(theirs)
        while data := _read(ours):
            shown += data
        os.close(ours)
        assert process.wait(PATIENCE_S) == 0, shown
    # What a progress line showed was erased.
    lines = [line.rpartition("\x1b[K")[2] for line in shown.decode().split("\r\n")]
    assert all(len(line) <= WIDTH or line.startswith("kafkashark: ") for line in lines)
    return "\n".join(lines)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # the end of a terminal
        return b""


@pytest.mark.thinned(15)
@pytest.mark.parametrize("ask", [in_pipes, in_a_terminal])
@pytest.mark.parametrize("question", QUESTIONS, ids=[each.text for each in QUESTIONS])
def test_a_question_is_answered_by_one_command(
    question: Question,
    ask: Callable[[Question, Path, Path], str],
    generated: Path,
    tmp_path: Path,
) -> None:
    capture = FOLDER / question.capture if question.capture else generated
    text = ask(question, capture, tmp_path)
    place = 0
    for pattern in question.answer:
        found = re.compile(pattern.replace(" ", r"\s+")).search(text, place)
        assert found, f"no {pattern!r} in:\n{text}"
        place = found.start()
    for pattern in question.absent:
        assert not re.search(pattern, text), text
    for made in tmp_path.glob("*.pcapng"):
        assert not re.search(rb"demo\.|billing|customer|lamp", made.read_bytes())


def test_what_happens_right_now_is_answered_until_somebody_ends_it() -> None:
    """The tenth question: `tcpdump -w - | kafkashark stats -`, ended by `kill` or `timeout`."""
    words = [sys.executable, "-m", "kafkashark", "stats", "-", "--interval", "0.1"]
    pipe = subprocess.PIPE
    with child(subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe)) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(far_and_busy())
        process.stdin.flush()
        while not (line := process.stdout.readline()).startswith(b"Heartbeat"):
            assert line, process.stderr.read()
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
        assert process.stderr.read() == b""
    assert process.returncode == 128 + signal.SIGTERM
    assert re.search(rb"Per API\n.*\nHeartbeat +20 .*Capture\n", rest, re.DOTALL)
