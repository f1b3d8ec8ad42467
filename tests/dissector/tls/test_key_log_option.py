"""`--keylog` on the commands that read captures."""

from __future__ import annotations

from pathlib import Path

import pytest

from dissector.cli import main
from dissector.errors import CaptureError, UsageError
from dissector.public import open_capture
from tests.corpus import FOLDER
from tests.dissector.capture.handmade_packets import block, interface, section

PLAIN = FOLDER / "aiokafka-produce-codecs.pcap"
TLS = FOLDER / "kafka4-java-tls12.pcap.gz"
KEYLOG = FOLDER / "kafka4-java-tls12.keylog"


COMMANDS = (
    "pairs", "dissect", "records", "streams", "stats", "conform", "groups", "upgrade --to 4.4",
    "timeline", "report -o out.html", "export -o out.pcapng",
    "export --redact --decrypt -o out.pcapng",
    "replay --to mock", "serve", "browse", "pipeline --out tables",
)  # fmt: skip


@pytest.mark.thinned(4)
@pytest.mark.parametrize("command", COMMANDS)
def test_the_error_for_an_unreadable_key_log_has_its_name(
    capsys: pytest.CaptureFixture[str],
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if command.startswith("pipeline"):
        pytest.importorskip("pyspark")
    monkeypatch.chdir(tmp_path)
    missing = str(tmp_path / "none.log")
    status = main([*command.split(), "--keylog", str(KEYLOG), "--keylog", missing, str(PLAIN)])
    done = capsys.readouterr()
    assert done.err == f"kafkashark: {missing}: key log: No such file or directory\n"
    assert (status, done.out) == (2, "")
    assert not list(tmp_path.iterdir())


def test_secrets_of_key_logs_and_of_pcapng_files(tmp_path: Path) -> None:
    lines = KEYLOG.read_bytes().splitlines(keepends=True)
    half = len(lines) // 2
    (tmp_path / "first.log").write_bytes(b"".join(lines[:half]))
    rest = b"".join(lines[half:])
    content = b"KSLT" + len(rest).to_bytes(4, "little") + rest + bytes(-len(rest) % 4)
    (tmp_path / "second.pcapng").write_bytes(section() + interface() + block(10, content))
    capture = open_capture(tmp_path / "second.pcapng", TLS, keylogs=[tmp_path / "first.log"])
    assert len(list(capture)) == 18
    assert capture.reading is not None
    assert capture.reading.keys.lines == len(set(lines))
    assert capture.reading.keys.skipped == 0


def test_bad_key_logs(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="several names"):
        open_capture(PLAIN, keylogs="one.log")
    with pytest.raises(CaptureError, match="key log"):
        list(open_capture(PLAIN, keylogs=[tmp_path]))
