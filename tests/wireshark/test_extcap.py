"""Interfaces in Wireshark: the tests call the program as Wireshark does, and so does tshark."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Self

import polars
import pytest

from dissector.cli import main
from kafkashark import open_capture
from tests.record.support.recorded_cluster import broker_thread
from tests.serve.support.raw_client import RawClient
from tests.waiting import child, wait_until
from wireshark import extcap_program

LOG = Path(__file__).parents[2] / "captures" / "kafka4-request-log.log.gz"

SAME = ("api", "api_version", "client_id", "correlation_id", "request_time_ns", "latency_ms")
"""Columns of a log that a capture has too."""

needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")


@pytest.fixture(scope="module")
def lines() -> list[bytes]:
    """The lines of a request log."""
    return gzip.decompress(LOG.read_bytes()).splitlines(keepends=True)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a user without settings of Wireshark."""
    for name in ("WIRESHARK_CONFIG_DIR", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def launcher(home: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The installed program."""
    assert main(["wireshark", "--install-extcap"]) == 0
    printed = capsys.readouterr().out
    assert '"Kafka request log" and "Kafka proxy"' in printed
    path = Path(printed.partition(": ")[0])
    assert path.is_relative_to(home)
    return path


class Captured:
    """What comes through the pipe of a capture."""

    def __init__(self, folder: Path, launcher: Path, interface: str, *words: object) -> None:
        fifo = folder / "fifo"
        os.mkfifo(fifo)
        self.data = bytearray()
        self._pipe = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        call = ("--capture", "--extcap-interface", interface, "--fifo", fifo, *words)
        self.process = subprocess.Popen(
            [launcher, *map(str, call)], stderr=subprocess.PIPE, text=True, cwd=folder
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self.process.kill()
        self.process.communicate()

    def close(self) -> None:
        """Read no more."""
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1

    def exchanges(self) -> polars.DataFrame:
        """Return the exchanges so far."""
        while True:
            try:
                block = os.read(self._pipe, 1 << 16)
            except BlockingIOError:
                break
            if not block:
                break
            self.data += block
        if len(self.data) < 200:
            return polars.DataFrame()
        return open_capture(bytes(self.data)).exchanges().drop("capture")


def sentences(capsys: pytest.CaptureFixture[str], *words: str) -> list[tuple[str, dict[str, str]]]:
    """Return the sentences of an answer: a word, and its values by name."""
    assert extcap_program.main([*words, "--extcap-version=4.0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(re.fullmatch(r"[a-z]+ (\{[a-z]+=[^{}]*\})+", line) for line in lines)
    return [(line.split()[0], dict(re.findall(r"\{([a-z]+)=([^{}]*)\}", line))) for line in lines]


def test_wireshark_learns_the_interfaces_and_their_settings(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (word, about), *interfaces = sentences(capsys, "--extcap-interfaces")
    assert (word, about["display"]) == ("extcap", "kafkashark")
    assert interfaces == [
        ("interface", {"value": "kafkalog", "display": "Kafka request log"}),
        ("interface", {"value": "kafkaproxy", "display": "Kafka proxy"}),
    ]
    required = set()
    for _, interface in interfaces:
        name = interface["value"]
        dlts = sentences(capsys, "--extcap-interface", name, "--extcap-dlts")
        assert [(word, given["number"]) for word, given in dlts] == [("dlt", "1")]
        settings = sentences(capsys, f"--extcap-interface={name}", "--extcap-config")
        arguments = [given for word, given in settings if word == "arg"]
        assert [int(each["number"]) for each in arguments] == list(range(len(arguments)))
        required |= {each["call"] for each in arguments if each.get("required") == "true"}
        for word, given in settings:
            if word == "value":
                assert arguments[int(given["arg"])]["type"] == "selector"
    assert required == {"--log", "--to"}


def test_a_log_is_captured_while_it_grows(
    tmp_path: Path, launcher: Path, lines: list[bytes]
) -> None:
    log = tmp_path / "kafka-request.log"
    log.touch()
    with Captured(tmp_path, launcher, "kafkalog", "--log", log, "--timezone", "UTC") as captured:
        with log.open("ab", buffering=0) as file:
            file.write(b"".join(lines[:40]))
            wait_until(lambda: len(captured.exchanges()) >= 10, "the first lines")
            begun = captured.exchanges()
            file.write(b"".join(lines[40:]))
        whole = open_capture(log).exchanges()
        wait_until(lambda: len(captured.exchanges()) == len(whole), "all lines")
        found = captured.exchanges()
        assert len(begun) < len(found)
        assert set(found.select(SAME).rows()) == set(whole.select(SAME).rows())
        captured.close()
        assert captured.process.wait() != 0, "it ends with its reader"
    if tshark := shutil.which("tshark"):
        (tmp_path / "read.pcapng").write_bytes(captured.data)
        command = [tshark, "-r", str(tmp_path / "read.pcapng"), "-Y", "tcp.len > 0"]
        shown = subprocess.run(command, capture_output=True, check=True, text=True).stdout
        assert shown.count("\n") >= len(whole)


def test_the_proxy_records_its_clients(tmp_path: Path, launcher: Path) -> None:
    with broker_thread({}) as broker:
        words = ("--to", f"127.0.0.1:{broker.port}", "--listen", "127.0.0.1:0", "--filter", "api")
        with Captured(tmp_path, launcher, "kafkaproxy", *words) as captured:
            assert captured.process.stderr is not None
            address = captured.process.stderr.readline().split()[-1]
            with RawClient(address) as client:
                client.ask("Metadata", 9, topics=[])
            wait_until(lambda: len(captured.exchanges()), "the exchange")
            assert captured.exchanges()["api"].to_list() == ["Metadata"]
            captured.process.terminate()  # as Wireshark does
            assert captured.process.wait() in (0, 143)
            assert "Traceback" not in captured.process.stderr.read()


@pytest.mark.long
@needs_tshark
def test_tshark_lists_the_interfaces_and_captures(
    tmp_path: Path, launcher: Path, lines: list[bytes]
) -> None:
    listed = subprocess.run(["tshark", "-D"], capture_output=True, check=True, text=True).stdout
    assert "kafkalog (Kafka request log)" in listed
    assert "kafkaproxy (Kafka proxy)" in listed
    log, written = tmp_path / "kafka-request.log", tmp_path / "written.pcapng"
    log.write_bytes(b"".join(lines))
    settings = ("-o", f"extcap.kafkalog.log:{log}", "-o", "extcap.kafkalog.once:true")
    command = ["tshark", "-i", "kafkalog", *settings, "-w", str(written)]
    with child(subprocess.Popen(command, stderr=subprocess.PIPE, text=True)) as process:
        process.communicate()
    found, whole = open_capture(written).exchanges(), open_capture(log).exchanges()
    assert found.select(SAME).equals(whole.select(SAME))


def test_no_file_of_another_origin_is_replaced(
    launcher: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["wireshark", "--install-extcap"]) == 0, "an older one of ours is"
    launcher.write_text("#!/bin/sh\necho another\n")
    capsys.readouterr()
    assert main(["wireshark", "--install-extcap"]) == 2
    said = f"kafkashark: {launcher} is not of kafkashark: move it away first\n"
    assert capsys.readouterr().err == said
    assert launcher.read_text() == "#!/bin/sh\necho another\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--extcap-interface none --extcap-dlts", "takes kafkalog or kafkaproxy"),
        ("--extcap-interface kafkalog --capture", "--fifo is missing"),
        ("--extcap-interface kafkalog --capture --fifo FIFO", "choose a request log"),
        ("--extcap-interface kafkalog --capture --fifo FIFO --log /no/file", "no such file"),
        ("--extcap-interface kafkalog --capture --fifo FIFO --log FIFO --once", "no request log"),
        ("--extcap-interface kafkaproxy --capture --fifo FIFO", "--to: the address"),
        ("--extcap-interface kafkaproxy --capture --fifo FIFO --to a --sasl X", "invalid choice"),
        ("--extcap-interface kafkalog --extcap-capture-filter tcp", "no capture filters"),
        ("--extcap-interface kafkalog --fifo", "expected one argument"),
    ],
)
def test_wrong_calls_are_one_line(
    tmp_path: Path,
    words: str,
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("wireshark.extcap_capture.end_with_reader", lambda pipe: None)
    (tmp_path / "file").write_text("no log\n" * 100)
    assert extcap_program.main(words.replace("FIFO", str(tmp_path / "file")).split()) == 2
    error = capsys.readouterr().err
    assert said.lower() in error.lower()
    assert (error.startswith("kafkashark: "), error.count("\n")) == (True, 1)
