"""Columns, order, number of rows, times and colour of tables."""

from __future__ import annotations

import csv
import fcntl
import io
import os
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import polars
import pytest

from dissector.cli.presentation.listing import CATALOGUES
from dissector.column_catalogue import FROM_BODIES, VALUES, names
from dissector.summary import upgrade_check
from dissector.summary.group_totals import MEASURES
from dissector.summary.groups_reader import SECTIONS
from dissector.summary.key_columns import KEYS
from dissector.summary.lag_intervals import LAG_SECTIONS
from dissector.summary.sections import NAMED
from dissector.summary.statistics import GROUPS, Grouping
from tests.dissector.cli.conftest import Run
from tests.waiting import child

DEMO = Path(__file__).parents[4] / "captures" / "demo.pcap"


def test_columns_and_fields_can_be_chosen(good: Run) -> None:
    chosen = "api,latency_ms,request.acks,request.topic_data.name,len(client_id),frame.number"
    words = ("pairs", DEMO, "-Y", "api == Produce", "--columns", chosen)
    every = good("pairs", DEMO, "-T", "ndjson", "-Y", "api == Produce", "--bodies").rows
    rows = good(*words, "-T", "ndjson").rows
    assert rows == [
        {
            "api": "Produce",
            "latency_ms": row["latency_ms"],
            "request.acks": row["request"]["acks"],
            "request.topic_data.name": row["topics"][0],
            "len(client_id)": len(row["client_id"]),
            "frame.number": [
                number for number in (row["request_packet"], row["response_packet"]) if number
            ]
            if row["response_packet"]
            else row["request_packet"],
        }
        for row in every
    ]
    header, *lines = csv.reader(io.StringIO(good(*words, "-T", "csv").out, newline=""))
    assert header == chosen.split(",")
    assert [line[2] for line in lines] == [str(row["request.acks"]) for row in rows]
    assert good(*words).lines[0].split() == chosen.split(",")


def test_single_columns(good: Run, tmp_path: Path) -> None:
    words = ("-e", "packet", "-e", "value", "-e", "latency_ms", "-c", "3")
    rows = good("records", DEMO, *words, "-T", "ndjson").rows
    assert [list(row) for row in rows] == [["packet", "value", "latency_ms"]] * 3
    assert all(row["latency_ms"] > 0 for row in rows)
    file = tmp_path / "rows.parquet"
    good("records", DEMO, *words, "-T", "parquet", "-o", file)
    table = polars.read_parquet(file)
    assert table.columns == ["packet", "value", "latency_ms"]
    assert [each.decode() for each in table["value"]] == [row["value"] for row in rows]


def test_parts_of_records_are_columns(good: Run, tmp_path: Path) -> None:
    chosen = "packet,header.trace,len(value),key[0:4],upper(key),compressed,request.acks,api"
    every = good("records", DEMO, "-T", "ndjson").rows
    rows = good("records", DEMO, "--columns", chosen, "-T", "ndjson").rows
    assert len(rows) == len(every) > 300
    for row, whole in zip(rows, every, strict=True):
        traces = [each["value"] for each in whole["headers"] if each["key"] == "trace"]
        assert row["header.trace"] == (traces[0] if traces else None)
        assert row["len(value)"] == len(whole["value"].encode())
        key = whole["key"]
        assert row["key[0:4]"] == (key and key[:4])
        assert row["upper(key)"] == (key and key.upper())
        assert row["compressed"] == (whole["codec"] != "none")
        assert (row["request.acks"] is None) == (whole["api"] == "Fetch")
    assert {row["header.trace"] for row in rows} > {None}
    file = tmp_path / "a.parquet"
    good("records", DEMO, "--columns", chosen, "-T", "parquet", "-o", file)
    assert polars.read_parquet(file)["key[0:4]"].to_list() == [row["key[0:4]"] for row in rows]


def test_secrets_of_records_stay_masked_in_columns(good: Run) -> None:
    capture = DEMO.with_name("kafka39-quorum.pcap")
    names = "topic,value,value[0:200],lower(value)"
    rows = good("records", capture, "--columns", names, "-T", "ndjson").rows
    masked = [row for row in rows if row["value"] == "***"]
    assert masked
    assert (
        {row["value[0:200]"] for row in masked} == {row["lower(value)"] for row in masked} == {None}
    )


def test_time_fields_are_shown_as_times(good: Run) -> None:
    for command, name in (("pairs", "request_time_ns"), ("records", "time_ns")):
        for form in ("table", "csv"):
            words = (command, DEMO, "-c", "3", "-T", form, "-t", "u")
            lines = good(*words, "--columns", f"frame.time,{name}").out.splitlines()[1:]
            assert all(line.count("Z") >= 2 and "1795254" not in line for line in lines)
    (row,) = good("records", DEMO, "-c", "1", "-T", "csv", "-t", "e", "-e", "timestamp").lines[1:]
    assert row.startswith("1795254392.0")


def test_columns_of_streams_and_stats(good: Run) -> None:
    lines = good("streams", DEMO, "--columns", "connection,bytes_a", "--sort", "-bytes_a").lines
    sizes = [int(line.split()[1]) for line in lines[1:]]
    assert sizes == sorted(sizes, reverse=True)
    rows = good("stats", DEMO, "-T", "ndjson", "--sort", "-p99_ms", "-c", "2", "-e", "p99_ms").rows
    apis = [row for row in rows if row["section"] == "apis"]
    assert [list(row) for row in apis] == [["section", "api", "p99_ms"]] * 2
    assert apis[0]["p99_ms"] >= apis[1]["p99_ms"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("pairs", "--columns", "nope"), "column, character 1: unknown name 'nope'\n  nope\n  ^"),
        (("streams", "--columns", "api"), "no column 'api'"),
        (("stats", "-e", "frame.len"), "no column 'frame.len'"),
        (("pairs", "--columns", "api,,api"), "a name is empty, or given twice"),
        (("pairs", "-e", "kafka.message_key"), "`kafkashark records` prints it"),
        (("pairs", "-t", "x"), "-t takes a, ad, r, d, e, u, ud, not 'x'"),
        (("pairs", "--color", "red"), "--color takes auto, always, never, not 'red'"),
    ],
)
def test_wrong_options(run: Run, words: tuple[str, ...], message: str) -> None:
    done = run(words[0], DEMO, *words[1:])
    assert (done.status, done.out) == (2, "")
    assert message in done.err


def test_secrets_stay_masked_in_columns(good: Run) -> None:
    capture = DEMO.with_name("kafka39-java-clients.pcap")
    rows = good("pairs", capture, "-T", "ndjson", "-e", "request.auth_bytes").rows
    shown = {row["request.auth_bytes"] for row in rows if row["request.auth_bytes"]}
    assert shown <= {"***"}


@pytest.mark.parametrize("command", ["pairs", "records", "streams", "dissect"])
def test_a_limit_gives_the_first_rows(good: Run, command: str) -> None:
    every = good(command, DEMO, "-T", "ndjson").rows if command != "dissect" else []
    if command == "dissect":
        lines = good("dissect", DEMO).lines
        assert good("dissect", DEMO, "-c", "7").lines == lines[:7]
        assert len(good("dissect", DEMO, "-c", "2", "-V").out.split("\n\n")) == 3
        return
    assert good(command, DEMO, "-T", "ndjson", "-c", "7").rows == every[:7]


def test_times_have_the_formats_of_tshark(good: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        words = ("pairs", DEMO, "-e", "request_time_ns", "-c", "2")
        shown = {
            style: [line.strip() for line in good(*words, "-t", style).lines[1:]]
            for style in ("a", "ad", "r", "d", "e", "u", "ud")
        }
        local = good(*words, "-t", "ad", "--utc").lines[1].strip()
    finally:
        monkeypatch.undo()
        time.tzset()
    assert shown == {
        "a": ["15:16:31.909369", "15:16:31.910916"],
        "ad": ["2026-11-21 15:16:31.909369", "2026-11-21 15:16:31.910916"],
        "r": ["0.000919", "0.002466"],
        "d": ["0.000000", "0.001547"],
        "e": ["1795254391.909369", "1795254391.910916"],
        "u": ["09:46:31.909369Z", "09:46:31.910916Z"],
        "ud": ["2026-11-21 09:46:31.909369Z", "2026-11-21 09:46:31.910916Z"],
    }
    assert local == "2026-11-21 09:46:31.909369Z"


def test_times_of_messages(good: Run) -> None:
    lines = good("dissect", DEMO, "-c", "2", "-t", "u").lines
    assert [line.split()[1] for line in lines] == ["09:46:31.909369Z", "09:46:31.910502Z"]
    by_objects = good("dissect", DEMO, "-c", "1", "-t", "u", "-V").lines
    assert by_objects[0] == lines[0]


def test_a_message_has_the_columns_of_its_own_packet(good: Run) -> None:
    names = "packet,kind,frame.number,source,request.client_software_name"
    lines = good("dissect", DEMO, "-T", "fields", "--columns", names, "-c", "2").lines
    first, second = (line.split("\t") for line in lines)
    assert first[:4] == ["4", "request", "4", "127.0.0.1:58326"]
    assert first[4]
    assert second == ["6", "response", "6", "127.0.0.1:27891", ""]


def test_colour_marks_errors(good: Run) -> None:
    plain = good("pairs", DEMO)
    coloured = good("pairs", DEMO, "--color", "always")
    red = [line for line in coloured.lines if "\x1b[91m" in line]
    errors = [row for row in good("pairs", DEMO, "-T", "ndjson").rows if row["errors"]]
    assert len(red) == len(errors) > 0
    for code in ("\x1b[91m", "\x1b[93m", "\x1b[1m", "\x1b[0m"):
        coloured = coloured._replace(out=coloured.out.replace(code, ""))
    assert coloured.out == plain.out
    messages = good("dissect", DEMO, "--color", "always").lines
    assert sum("\x1b[91m" in line for line in messages) == len(errors)
    assert not any(line.startswith("\x1b[91m") for line in messages), "only the errors are red"


def on_terminal(width: int, *words: str | Path, no_color: bool = True) -> tuple[list[str], str]:
    """Run a command on a pseudo-terminal; return its lines and its messages."""
    import pty

    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    environment = {**os.environ, "TERM": "xterm", "NO_COLOR": "1" if no_color else ""}
    environment.pop("COLUMNS", None)  # it would replace the width of the terminal
    command = [sys.executable, "-m", "dissector", *map(str, words)]
    with child(
        subprocess.Popen(command, stdout=terminal, stderr=subprocess.PIPE, env=environment)
    ) as process:
        os.close(terminal)
        shown = b""
        try:
            while data := os.read(controller, 65536):
                shown += data
        except OSError:  # the end of a terminal
            pass
        assert process.stderr is not None
        report = process.stderr.read().decode()
    os.close(controller)
    return shown.decode().replace("\r", "").splitlines(), report


@pytest.mark.thinned(4)
@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("command", ["pairs", "records", "streams", "stats"])
def test_a_table_fits_its_terminal(command: str, width: int) -> None:
    # A long error, as of row 17, takes the place of the status.
    lines, report = on_terminal(width, command, DEMO, "-c", "8")
    assert max(map(len, lines)) <= width
    if command == "pairs":
        assert [line.split()[0] for line in lines[:2]] == ["request_", "packet"]
    needed = {
        "pairs": ("api", "status"),
        "records": ("topic", "key", "value"),
        "streams": ("a", "b", "speaks", "ended"),
        "stats": ("Per API", "p99_ms", "max_ms"),
    }
    text = "\n".join(lines)
    assert all(name in text for name in needed[command])
    if command != "stats":
        assert report.startswith("kafkashark: left out: ")
        assert "--columns chooses columns" in report


@pytest.mark.long
def test_tls_columns_fit_the_terminal() -> None:
    capture = DEMO.with_name("kafka4-java-tls13.pcap.gz")
    keylog = capture.with_name("kafka4-java-tls13.keylog")
    assert "tls_version" not in on_terminal(80, "streams", DEMO)[0][0].split()
    lines, report = on_terminal(80, "streams", capture)
    assert lines[2].split()[-3:] == ["no", "key", "log"]
    assert "tls_cipher" in report
    lines, _ = on_terminal(120, "streams", capture, "--keylog", keylog)
    assert "TLS 1.3" in lines[2]
    assert lines[2].endswith("CN=orde…Orders")


def test_all_chosen_columns_are_shown(good: Run) -> None:
    lines, report = on_terminal(
        80, "pairs", DEMO, "--columns", "request_packet,client,api,topics", "-c", "5"
    )
    assert (len(lines[0].split()), report) == (4, "")


def test_a_terminal_gets_colours() -> None:
    words = ("pairs", DEMO, "-Y", "error", "-c", "1")
    assert "\x1b[91m" in "".join(on_terminal(120, *words, no_color=False)[0])
    assert "\x1b" not in "".join(on_terminal(120, *words)[0])


def test_null_and_empty_differ(good: Run, shop: Path) -> None:
    words = ("records", shop, "--columns", "key,value", "-T", "csv")
    assert "0xff00,\r\n" in good(*words).out
    names = ("pairs", DEMO, "-T", "csv", "--columns", "request.rack_id,response_bytes", "-c", "300")
    cells = {line.split(",")[0] for line in good(*names).out.split("\r\n")[1:-1]}
    assert cells == {"", '""'}
    shown = {line[:2] for line in good(*names[:2], *names[4:]).lines[1:]}
    assert {"  ", '""'} <= shown


ALL_COLUMNS = {"pairs": DEMO.with_name("kafka4-request-log.log.gz")}
"""Captures of which a command has all its columns."""

ON_REQUEST = {"records": VALUES, "pairs": FROM_BODIES}
"""Columns that a command has on request."""


@pytest.mark.thinned(4)
@pytest.mark.parametrize(
    "command", ["dissect", "pairs", "records", "streams", "stats", "groups", "upgrade", "schemas"]
)
def test_columns_and_fields_are_listed(good: Run, command: str) -> None:
    listed = [line.split()[0] for line in good(command, "--list-columns").lines]
    assert len(set(listed)) == len(listed) > 10
    if command in ("pairs", "records", "streams"):
        row = good(command, ALL_COLUMNS.get(command, DEMO), "-T", "ndjson", "-c", "1").rows[0]
        assert listed == [*row, *names(ON_REQUEST.get(command, ()))]
    fields = {line.split()[0] for line in good(command, "--list-fields").lines}
    assert {"api", "frame.len", "kafka.consumer_group", "request.acks"} <= fields
    assert ("header.NAME" in fields) == (command in ("records", "schemas"))


@pytest.mark.parametrize("command", ["pairs", "records", "dissect", "streams"])
def test_each_column_has_its_values(run: Run, command: str) -> None:
    """In the row of one exchange, in bulk, and in filters."""
    columns = names(CATALOGUES[command])
    tests = " and ".join(f"({name} or not {name})" for name in columns)
    rows = ("-T", "ndjson", "-c", "1", *(("-Y", tests) if command in ("pairs", "records") else ()))
    if command == "records":
        rows = (*rows, "--value-format", "none=text")  # adds the columns that are there on request
    bulk = ("-T", "csv", "-c", "1", "--columns", ",".join(columns))
    for words in (rows, bulk) if command != "dissect" else (rows,):
        done = run(command, ALL_COLUMNS.get(command, DEMO), *words)
        advice = f"{words[1]} lacks a column of the catalogue: `Add a column` in CONTRIBUTING.md"
        assert done.status == 0, f"{advice}: {done.err}"
        if words is rows:
            on_request = names(FROM_BODIES) if command == "pairs" else ()
            assert set(columns) - set(on_request) <= set(done.rows[0]), advice


def test_all_sections_are_in_the_list_of_columns() -> None:
    groupings = (Grouping(tuple(KEYS), tuple(MEASURES)), *GROUPS.values())
    of_stats = {name for grouping in groupings for name in grouping.columns}
    of_stats |= {name for _, grouping in NAMED.values() for name in grouping.columns}
    assert set(names(CATALOGUES["stats"])) == of_stats | {"time"}
    of_groups = {name for _, columns in {**SECTIONS, **LAG_SECTIONS}.values() for name in columns}
    assert set(names(CATALOGUES["groups"])) == of_groups
    of_upgrade = {*upgrade_check.CLIENT_COLUMNS, *upgrade_check.BROKER_COLUMNS}
    assert set(names(CATALOGUES["upgrade"])) == of_upgrade
