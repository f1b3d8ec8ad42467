"""Exit status of commands, and one line for each error."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import lz4.frame
import pytest
import zstandard

from dissector.cli import app, main
from dissector.cli.declared.builtin_commands import BUILTIN
from dissector.cli.parsing.command_table import ENTRY_POINT_GROUP
from dissector.cli.parsing.declarations import Options, option
from tests import tcp_captures
from tests.dissector.cli import cli_traffic
from tests.dissector.cli.conftest import Run

COMMANDS = [*(each.__name__ for each in BUILTIN), "demo"]
READERS = ("dissect", "pairs", "streams", "records", "stats")
SNOOP = b"snoop\0\0\0\0\0\0\2\0\0\0\4"


@pytest.mark.parametrize("words", [[], ["pairs"], ["replay"]])
def test_help_is_a_command(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert main(["help", *words]) == main([*words, "--help"]) == 0
    first, second = capsys.readouterr().out.split("Usage: ")[1:]
    assert first == second


def test_version(good: Run) -> None:
    done = good("--version")
    assert done.out.startswith("kafkashark ")


@pytest.mark.parametrize("words", [["--help"], ["-h"], *([name, "-h"] for name in COMMANDS)])
def test_help(good: Run, words: list[str]) -> None:
    out = good(*words).out
    assert out.startswith("Usage: kafkashark")
    if len(words) == 1:
        assert all(f"\n  {name} " in out for name in COMMANDS)


def test_a_missing_command_shows_help_on_stderr(run: Run) -> None:
    done = run()
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("Usage: kafkashark")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["nonsense"], "nonsense"),
        (["--nonsense"], "--nonsense"),
        (["pairs"], "CAPTURE"),
        (["pairs", "a", "--nonsense"], "--nonsense"),
        (["pairs", "a", "-T"], "-T"),
        (["pairs", "a", "-T", "xml"], "'xml'"),
        (["pairs", "a", "--port", "0"], "--port"),
        (["pairs", "a", "--port", "65536"], "--port"),
        (["pairs", "a", "--port", "kafka"], "--port"),
        (["pairs", "a", "--max-frame-bytes", "-1"], "--max-frame-bytes"),
        (["pairs", "a", "--sort", ""], "--sort"),
        (["dissect", "a", "-T", "csv"], "'csv'"),
        (["records", "a", "--bodies"], "--bodies"),
        (["streams", "a", "-T", "text"], "'text'"),
        (["schema", "a", "1", "c"], "c"),
        (["pairs", "a\x1b[2J", "--nope\x1b[2J"], "--nope\\x1b[2J"),
    ],
)
def test_wrong_usage_is_a_one_line_error(run: Run, words: list[str], named: str) -> None:
    done = run(*words)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("kafkashark: ")
    assert (done.err.count("\n"), done.err[-1]) == (1, "\n")
    assert named in done.err
    assert "\x1b" not in done.err


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize(
    ("text", "caret"),
    [
        ("api = 3", 4),
        ("", 0),
        ("api == ", 7),
        ("apo == 3", 0),
        ('api == "', 7),
        ("api_key == 3 )", 13),
    ],
)
def test_a_wrong_filter_has_a_caret_under_the_error(
    run: Run, shop: Path, command: str, text: str, caret: int
) -> None:
    done = run(command, shop, "-Y", text)
    assert (done.status, done.out) == (2, "")
    said, shown, under = done.err.split("\n")[:3]
    assert said.startswith(f"kafkashark: filter, character {caret + 1}: ")
    assert shown == f"  {text}"
    assert under == f"  {' ' * caret}^"


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not a capture: empty file"),
        (b"Dear reader,\n", "not a capture: text"),
        (SNOOP, "not a capture: snoop file"),
        (gzip.compress(b"Dear reader"), "not a capture: text inside gzip"),
        (b"\x7fELF\x02\x01\x01\0", "not a capture: begins with bytes 7f 45 4c 46 02 01 01 00"),
        (bytes.fromhex("a1b2c3d4 0002"), "pcap file cut off in its header at byte 6"),
    ],
)
def test_a_file_other_than_a_capture_is_an_error(
    run: Run, tmp_path: Path, command: str, content: bytes, said: str
) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(content)
    assert run(command, path) == (2, "", f"kafkashark: {path}: {said}\n")


@pytest.mark.parametrize("command", READERS)
def test_unreadable_files_are_errors(run: Run, tmp_path: Path, command: str) -> None:
    missing = tmp_path / "missing.pcap"
    assert run(command, missing) == (2, "", f"kafkashark: {missing}: no such file\n")
    assert run(command, tmp_path) == (2, "", f"kafkashark: {tmp_path}: is a directory\n")
    below = tmp_path / "x"
    below.touch()
    done = run(command, below / "y")
    assert (done.status, done.out) == (2, "")
    assert done.err == f"kafkashark: {below / 'y'}: not a directory\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_read_permission(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.touch(mode=0)
    assert run("pairs", path) == (2, "", f"kafkashark: {path}: permission denied\n")


def test_all_files_are_checked_before_the_first_is_read(
    run: Run, shop: Path, tmp_path: Path
) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("none")
    assert run("pairs", shop, path) == (2, "", f"kafkashark: {path}: not a capture: text\n")


@pytest.mark.parametrize("command", READERS)
def test_a_truncated_capture_gives_its_rows(
    run: Run, shop: Path, tmp_path: Path, command: str
) -> None:
    path = tmp_path / "cut.pcap"
    data = shop.read_bytes()
    path.write_bytes(data[:-7])
    done = run(command, path, "-T", "ndjson")
    assert (done.status, len(done.rows) > 0) == (0, True)
    assert done.err.startswith(f"kafkashark: {path}: cut off: ")
    at = len(data) - 16 - packets_size(shop)
    assert done.err.endswith(f" at byte {at:,}\n")
    assert done.err.count("\n") == 1
    if command == "pairs":
        assert len(done.rows) == 9


def packets_size(path: Path) -> int:
    """Return the size of the last packet, an acknowledgement without payload: IPv6 in a VLAN."""
    assert path.suffix == ".pcap"
    return 14 + 4 + 40 + 20


def test_a_damaged_file_among_others(run: Run, tmp_path: Path) -> None:
    sent = cli_traffic.shop().packets
    first, second = tmp_path / "1.pcap", tmp_path / "2.pcap"
    tcp_captures.write(first, sent[:30])
    tcp_captures.write(second, sent[30:])
    with first.open("ab") as file:
        file.write(b"123")
    done = run("pairs", first, second, "-T", "ndjson")
    assert (done.status, len(done.rows)) == (0, 9)
    assert done.err.startswith(f"kafkashark: {first}: cut off: 3 bytes")


@pytest.mark.parametrize(
    "pack", [gzip.compress, zstandard.compress, lz4.frame.compress], ids=["gzip", "zstd", "lz4"]
)
def test_compressed(good: Run, shop: Path, tmp_path: Path, pack: Any) -> None:
    path = tmp_path / "whatever.name"
    path.write_bytes(pack(shop.read_bytes()))
    rows = good("pairs", shop, "-T", "ndjson").rows
    assert good("pairs", path, "-T", "ndjson").rows == [r | {"capture": str(path)} for r in rows]


def test_truncated_and_compressed(run: Run, shop: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.pcap.gz"
    packed = gzip.compress(shop.read_bytes())
    path.write_bytes(packed[: len(packed) * 3 // 4])
    done = run("pairs", path, "-T", "ndjson")
    assert (done.status, len(done.rows) > 2) == (0, True)
    assert done.err.startswith(f"kafkashark: {path}: gzip data is cut off at byte ")


def test_pcapng(good: Run, shop: Path, tmp_path: Path) -> None:
    path = tcp_captures.write(tmp_path / "a.pcapng", cli_traffic.shop().packets)
    rows = good("pairs", path, "-T", "ndjson").rows
    assert rows == [row | {"capture": path} for row in good("pairs", shop, "-T", "ndjson").rows]


@pytest.mark.parametrize("command", READERS)
def test_standard_input(
    good: Run, shop: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(gzip.compress(shop.read_bytes())))
    monkeypatch.setattr(sys, "stdin", stdin)
    text = good(command, "-", "-T", "ndjson").out
    rows = good(command, shop, "-T", "ndjson").out.replace(str(shop), "-")
    # A topic name defined later in the capture is not known yet.
    assert text.replace(str(cli_traffic.ORDERS_ID), "orders").count("\n") >= rows.count("\n")
    if command in ("pairs", "dissect"):
        assert text.replace(f'["{cli_traffic.ORDERS_ID}"]', '["orders"]') == rows


def test_only_the_given_command_is_loaded(shop: Path) -> None:
    """Each has imports that delay the others."""
    script = (
        f"import sys; from dissector.cli import main; main(['pairs', {str(shop)!r}])\n"
        "print(sorted(m for m in sys.modules if m.startswith('dissector.cli.')))\n"
        "print([m for m in ('polars', 'pyarrow', 'scapy', 'asyncio') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    loaded, heavy = done.stdout.decode().splitlines()[-2:]
    assert "dissector.cli.pairs" in loaded
    assert "dissector.cli.dissect" not in loaded
    assert "dissector.cli.streams" not in loaded
    assert heavy == "[]"


@pytest.mark.thinned(4)
@pytest.mark.parametrize(
    ("words", "shell"),
    [
        *((["--help"], ""), (["--version"], ""), ([], "")),
        *(([name, "--help"], "") for name in ("pairs", "conform", "replay", "serve", "pipeline")),
        *(([""], shell) for shell in ("bash", "zsh", "fish")),
        *(([name, "--"], "bash") for name in ("stats", "timeline", "report", "browse")),
        (["dissect", "-T", ""], "zsh"),
    ],
)
def test_help_and_completion_load_only_declarations(words: list[str], shell: str) -> None:
    script = (
        f"import sys; from dissector.cli import main; main({words!r})\n"
        "heavy = 'numpy polars construct textual asyncio cryptography'\n"
        "print(*(m for m in heavy.split() if m in sys.modules), file=sys.stderr)"
    )
    environment = os.environ | ({"_KAFKASHARK_COMPLETE": shell} if shell else {})
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, check=True, env=environment, text=True)
    assert done.stderr.splitlines()[-1] == ""
    assert len((done.stdout or done.stderr).splitlines()) > (words != ["--version"])


def test_entry_points_are_commands(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    here = EntryPoint("shout", f"{__name__}:shout", ENTRY_POINT_GROUP)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: EntryPoints([here]))
    assert run("shout", "hello") == (1, "HELLO\n", "")
    assert "shout" in run("--help").out
    assert run("shuot", "hello").err == (
        "kafkashark: no command 'shuot'; did you mean shout? (kafkashark --help)\n"
    )


class ShoutOptions(Options):
    word: str = option(metavar="WORD", help="A word.")


def shout(given: ShoutOptions) -> int:
    """Print a word; its status becomes that of the process."""
    print(given.word.upper())
    return 1


def whisper(word: str) -> None:
    """Print a word, as no command does: without options."""


def test_a_function_without_options_is_no_command(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = EntryPoint("whisper", f"{__name__}:whisper", ENTRY_POINT_GROUP)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: EntryPoints([here]))
    done = run("whisper", "hello")
    assert (done.status, done.out) == (2, "")
    assert "whisper can't be loaded: TypeError: the function of a command takes one" in done.err
    assert "whisper  Can't be loaded." in run("--help").out


def test_an_internal_error_is_one_line(
    run: Run, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mistake(*words: object) -> None:
        raise ZeroDivisionError("by\nzero")

    monkeypatch.setattr("dissector.cli.capture_source.Capture", mistake)
    done = run("pairs", shop)
    assert (done.status, done.out, done.err.count("\n")) == (app.EXIT_BUG, "", 1)
    assert "ZeroDivisionError in test_app.py line " in done.err


def test_interrupted(monkeypatch: pytest.MonkeyPatch, shop: Path) -> None:
    def interrupt(*words: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dissector.cli.capture_source.Capture", interrupt)
    assert main(["pairs", str(shop)]) == 130
