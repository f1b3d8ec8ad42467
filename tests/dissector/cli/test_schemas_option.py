"""`--schemas` on the commands that read captures."""

from __future__ import annotations

import os
from pathlib import Path

import polars
import pytest

from browse.cli import browse
from conform.cli import conform
from dissector.cli.declared.builtin_commands import BUILTIN
from dissector.cli.declared.reading_options import SchemaSourceOptions
from dissector.cli.parsing.declarations import Command
from pipeline.cli import pipeline
from replay.cli import replay
from report.cli import report
from serve.cli import serve
from tests import default_frames, definitions, tcp_captures
from tests.dissector.cli.conftest import Run
from timeline.cli import timeline

FEW, MANY = 4, 150
INSTALLED = (browse, conform, pipeline, replay, report, serve, timeline)


@pytest.fixture
def vendor(tmp_path: Path) -> str:
    return definitions.vendor(tmp_path / "vendor")


@pytest.fixture(params=[FEW, MANY])
def pings(request: pytest.FixtureRequest, tmp_path: Path, vendor: str) -> str:
    return definitions.write_pings(tmp_path / "pings.pcap", vendor, request.param)


def test_every_command_has_the_option() -> None:
    """Once declared, it is the same everywhere."""
    commands = [Command.of(each.__name__, each) for each in (*BUILTIN, *INSTALLED)]
    found = {id(each.options.declared().get("schemas")) for each in commands}
    assert found == {id(SchemaSourceOptions.declared()["schemas"])}


def test_rows_with_bodies(good: Run, pings: str, vendor: str) -> None:
    rows = good("pairs", "--bodies", "-T", "ndjson", "--schemas", vendor, pings).rows
    ping = next(row for row in rows if row["correlation_id"] == 3)
    assert ping["api"] == "VendorPing"
    assert ping["request"] == {
        "points": [{"x": 3, "topic": "t0"}],
        "access_token": "***",
        "extra": -1,
    }
    assert ping["response"] == {"error_code": 3, "node": 7}
    assert ping["problems"] == [
        "request: VendorPing v1 is decoded by vendor",
        "response: VendorPing v1 is decoded by vendor",
    ]


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    "words",
    [
        ("dissect",),
        ("dissect", "-T", "ndjson"),
        ("dissect", "-V"),
        ("dissect", "-x"),
        ("pairs", "-T", "csv", "--bodies"),
    ],
)
def test_secrets_are_masked(good: Run, pings: str, vendor: str, words: tuple[str, ...]) -> None:
    out = good(*words, "--schemas", vendor, pings).out
    assert "VendorPing" in out
    assert "hush" not in out
    hidden = good(*words, "--show-secrets", "--schemas", vendor, pings).out
    assert words[-1] == "dissect" or "hush" in hidden


def test_fields(good: Run, pings: str, vendor: str, tmp_path: Path) -> None:
    file = tmp_path / "fields.parquet"
    good("dissect", "-T", "parquet", "-o", file, "--schemas", vendor, pings)
    table = polars.read_parquet(file)
    of_one = table.filter((polars.col("api") == "VendorPing") & (polars.col("correlation_id") == 3))
    paths = of_one["path"].cast(polars.String).to_list()
    assert {"points.x", "points.topic", "access_token", "error_code", "node"} <= set(paths)
    assert "is decoded by vendor" in str(of_one["problem"].to_list())


def test_filters_accept_the_names(good: Run, pings: str, vendor: str) -> None:
    text = "api == VendorPing and request.points.x == 3 and response.node == 7"
    rows = good("pairs", "-T", "ndjson", "--schemas", vendor, "-Y", text, pings).rows
    assert [row["correlation_id"] for row in rows] == [3]


def test_the_environment_variable(
    good: Run, run: Run, pings: str, vendor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKASHARK_SCHEMAS", os.pathsep.join((vendor, vendor)))
    assert "VendorPing" in good("stats", pings).out
    assert "VendorPing response v1" in good("schema", "VendorPing").out
    monkeypatch.delenv("KAFKASHARK_SCHEMAS")
    # The next command is unaffected.
    assert "VendorPing" not in good("stats", pings).out
    assert run("schema", "VendorPing").status == 2


def test_unusable_definitions_are_reported_once(run: Run, pings: str, vendor: str) -> None:
    broken = Path(vendor) / "Broken.json"
    broken.write_text('{"name": "BrokenRequest", "type": "request", "apiKey": 601\n "x"}')
    done = run("pairs", "-T", "ndjson", "--schemas", vendor, pings)
    assert done.status == 0
    assert done.err.splitlines() == [
        f"kafkashark: {broken}: line 2 column 2: not JSON: Expecting ',' delimiter"
    ]
    assert done.rows[1]["api"] == "VendorPing"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("absent.jar", "No such file or directory"),
        ("text.jar", "neither a JAR nor a folder of definitions (File is not a zip file)"),
        ("empty", "no message definitions (common/message/*.json); kafka-clients has them"),
    ],
)
def test_sources_without_definitions_are_errors(
    run: Run, shop: Path, tmp_path: Path, name: str, said: str
) -> None:
    (tmp_path / "text.jar").write_text("no zip")
    (tmp_path / "empty").mkdir()
    done = run("pairs", "--schemas", tmp_path / name, shop)
    assert (done.status, done.out) == (2, "")
    assert done.err == f"kafkashark: {tmp_path / name}: {said}\n"


def test_conform_has_no_findings_in_messages_of_a_definition(
    run: Run, pings: str, vendor: str
) -> None:
    done = run("conform", "--schemas", vendor, pings)
    assert (done.status, done.err) == (0, "")
    assert "0 errors, 0 warnings" in done.out


def test_messages_contradicting_a_definition_are_masked(
    good: Run, tmp_path: Path, vendor: str
) -> None:
    wire = tcp_captures.Wire()
    connection = wire.connect().syn()
    connection.client(default_frames.request(3, 9, 1, "vendor")).broker(
        default_frames.response(3, 9, 1)
    )
    head = bytes.fromhex("0258 0000 00000002 0006") + b"vendor"
    connection.client(default_frames.sized(head + bytes.fromhex("00000000 7fff") + b"hush"))
    path = tcp_captures.write(tmp_path / "bad.pcap", wire.packets)
    out = good("dissect", "-x", "--schemas", vendor, path).out
    assert "VendorPing" in out
    assert "hush" not in out
    assert "hush" in good("dissect", "-x", "--show-secrets", "--schemas", vendor, path).out
