"""Without the extra `tables` all commands give the same, and tables of polars are one line."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.corpus import FOLDER

DEMO, LOG = FOLDER / "demo.pcap", FOLDER / "kafka4-request-log.log.gz"

COMMANDS = (
    "demo.pcap",
    "advise demo.pcap",
    "conform demo.pcap -T ndjson",
    "dissect demo.pcap -T parquet -o dissect.parquet",
    "export demo.pcap --redact --key key -o redacted.pcapng",
    "groups demo.pcap --interval 1",
    "pairs demo.pcap -T parquet -o pairs.parquet",
    "pairs log.gz --with log.gz --sort -outside_ms",
    "records demo.pcap -T ndjson",
    "replay demo.pcap --dry-run",
    "report demo.pcap -o report.html",
    "report demo.pcap -o report.txt",
    "schemas demo.pcap",
    "secrets sasl.pcap",
    "stats demo.pcap --by api,client,topic,minute",
    "streams demo.pcap -T parquet -o streams.parquet",
    "timeline demo.pcap -T parquet -o timeline.parquet",
    "upgrade demo.pcap --to 4.0",
)

RUN = f"""
import sys
if sys.argv[1] == "without":
    sys.modules["polars"] = None
from dissector.cli import main
for number, line in enumerate({COMMANDS!r}):
    with open(f"{{number}}.out", "w") as sys.stdout, open(f"{{number}}.err", "w") as sys.stderr:
        assert main(line.split()) in (0, 1), line
"""

CALLS = (
    *("exchanges()", "records()", "fields()", "streams()", "stats()", "groups()", "upgrade()"),
    *("scan()", "scan('fields')", "batches()", "record_batches()"),
)

PYTHON = f"""
import sys
sys.modules["polars"] = None
from kafkashark import UsageError, open_capture
capture = open_capture({str(DEMO)!r})
for call in {CALLS!r}:
    try:
        eval("capture." + call)
    except UsageError as error:
        print(error)
"""


@pytest.mark.long
def test_commands_give_the_same(tmp_path: Path) -> None:
    outputs = []
    for name in ("with", "without"):
        folder = tmp_path / name
        folder.mkdir()
        shutil.copy(DEMO, folder / "demo.pcap")
        shutil.copy(FOLDER / "kafka4-librdkafka-sasl.pcap", folder / "sasl.pcap")
        shutil.copy(LOG, folder / "log.gz")
        (folder / "key").write_text("a key of this test\n")
        subprocess.run([sys.executable, "-c", RUN, name], cwd=folder, check=True)
        outputs.append({each.name: each.read_bytes() for each in sorted(folder.iterdir())})
    has, lacks = outputs
    assert has.keys() == lacks.keys()
    assert [name for name in has if has[name] != lacks[name]] == []
    assert all(
        has[f"{number}.out"] or has[f"{number}.err"] or " -o " in line
        for number, line in enumerate(COMMANDS)
    )


def test_tables_of_python_name_the_extra() -> None:
    ran = subprocess.run([sys.executable, "-c", PYTHON], capture_output=True, text=True)
    line = "a table of polars needs an extra: pip install 'kafkashark[tables]'"
    assert [each.startswith(line) for each in ran.stdout.splitlines()] == [True] * len(CALLS)


def test_files_of_topics_name_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from dissector.cli import main

    monkeypatch.setitem(sys.modules, "polars", None)
    folder = tmp_path / "topics"
    words = ["records", str(DEMO), "-T", "parquet", "--values-as", "struct", "-o", str(folder)]
    assert main(words) == 2
    said = "--values-as struct needs an extra: pip install 'kafkashark[tables]'"
    assert capsys.readouterr().err.startswith(f"kafkashark: {said}")
    assert not folder.exists()
