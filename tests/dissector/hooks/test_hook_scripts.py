"""Scripts with hooks, through the commands that take them; those of docs/hooks.md among them."""

from __future__ import annotations

import gzip
import json
import re
import struct
from collections import Counter
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from dissector.cli import main
from dissector.errors import FilterError
from dissector.filter import parse
from dissector.hooks import hook_functions
from dissector.hooks.hook_functions import find_hooks
from dissector.public import open_capture
from dissector.values.value_settings import ValueSettings
from kafkashark import advise, conform
from kafkashark.hooks import Record
from tests import tcp_captures
from tests.dissector.cli import cli_traffic

ROOT = Path(__file__).parents[3]
TEAM = 'hook.team == "billing"'
DEMO = str(ROOT / "captures" / "demo.pcap")
PAGE = (ROOT / "docs" / "hooks.md").read_text(encoding="utf-8")
SCRIPTS = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE, re.DOTALL))

Write = Callable[[str], str]
Rows = list[dict[str, Any]]


@pytest.fixture
def script(tmp_path: Path) -> Write:
    """Writes a script of its own name, as each is loaded once."""

    def write(code: str) -> str:
        path = tmp_path / f"script{len(list(tmp_path.iterdir()))}.py"
        path.write_text(code)
        return str(path)

    return write


def rows(capsys: pytest.CaptureFixture[str], *words: str) -> Rows:
    capsys.readouterr()
    assert main([*words, "-T", "ndjson"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def read(
    name: str, tmp_path: Path, topic: str, data: bytes, **given: Any
) -> tuple[str | None, Any]:
    """Decode a value with a script of the page."""
    path = tmp_path / name
    path.write_text(SCRIPTS[name])
    reader = ValueSettings(scripts=(str(path),)).reader()
    record = Record(topic, value=data, **given)
    found = reader.read(topic, data, record.headers, record=record)
    assert found.problem is None
    return found.format, found.value


def test_the_scripts_of_the_page_decode(tmp_path: Path) -> None:
    assert len(SCRIPTS) == 9
    assert read("item_values.py", tmp_path, "t", b"lamp x 3") == (
        "item_values",
        {"item": "lamp", "quantity": 3},
    )
    assert read("item_values.py", tmp_path, "t", b'{"a": 1}') == ("json", {"a": 1})
    data = struct.pack(">Hqd", 7, 1_000, 21.5)
    assert read("sensor_values.py", tmp_path, "sensors", data) == (
        "reading",
        {"sensor": 7, "time_ms": 1_000, "celsius": 21.5},
    )
    packed = gzip.compress(b'{"a": [1, 2]}')
    found = read("gzip_values.py", tmp_path, "t", packed, headers={"content-encoding": b"gzip"})
    assert found == ("gzip_values", {"a": [1, 2]})
    assert read("ledger_values.py", tmp_path, "ledger", b"5 \x80", timestamp=1_700_000_000_000) == (
        "cp1252",
        "5 \u20ac",
    )
    assert read("ledger_values.py", tmp_path, "ledger", b"5 $")[0] == "text"
    assert read("pair_values.py", tmp_path, "t", b"\xff\x00")[1]["length"] == 2


def test_decoded_values_have_columns_filters_and_masks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "item_values.py"
    path.write_text(SCRIPTS["item_values.py"].replace('rb"(\\w+) x (\\d+)"', 'rb"(nothing)(0)"'))
    given = ("records", DEMO, "--script", str(path), "-Y", "topic == demo.orders")
    everything = rows(capsys, *given)
    assert {each["key_format"] for each in everything} == {"item_values"}
    assert {each["value_format"] for each in everything} == {"json"}  # not its business
    threes = rows(capsys, *given[:-1], "topic == demo.orders and key.number == 3")
    assert threes == [each for each in everything if each["key"] == "customer-3"]
    assert threes
    assert all(each["key_decoded"] == {"kind": "customer", "number": 3} for each in threes)
    masked = rows(capsys, *given, "--mask", "key.number")
    assert {each["key_decoded"]["number"] for each in masked} == {"***"}
    frame = open_capture(DEMO, scripts=[path]).records()
    assert set(frame["key_format"].drop_nulls()) == {"item_values"}


def test_a_hook_gets_the_columns_of_its_record(
    script: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("topic", "partition", "offset", "timestamp_ms", "client_id", "packet", "key", "value")
    path = script(
        "def text(data):\n"
        "    return None if data is None else data.decode()\n"
        "def value(record):\n"
        "    topic, key, value, headers, *rest = record\n"
        "    return [topic, *rest, text(key), text(value)]\n"
        "def key(record):\n"
        "    return value(record)\n"
    )
    for command in (
        ("records", DEMO),  # by columns
        ("records", DEMO, "-Y", "value"),  # and with a filter on what hooks return
        ("records", DEMO, "-Y", "offset >= 0 and api_version > 0"),  # by exchanges
    ):
        given = rows(capsys, *command, "--script", path)
        assert given
        for each in given:
            expected = [each[name] for name in names]
            assert each["key"] is None or each["key_decoded"] == expected
            assert each["value"] is None or each["value_decoded"] == expected
    hidden = rows(capsys, "records", DEMO, "--script", path, "--mask", "value.card")
    assert {each["key"] for each in hidden} <= {"***", None}


def test_a_failing_hook_is_a_problem_of_its_record(
    script: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    path = script(
        "import json\n"
        "def value(record):\n"
        "    if b'lamp' in record.value:\n"
        "        json.loads('{')\n"
        "    if b'clock' in record.value:\n"
        "        return {1, 2}\n"
        "    if b'table' in record.value:\n"
        "        raise SystemExit(3)\n"
        "def key(record):\n"
        "    return float('nan')\n"
    )
    given = rows(capsys, "records", DEMO, "--script", path, "-Y", "topic == demo.orders")
    place = re.escape(path)
    assert len(given) == len(rows(capsys, "records", DEMO, "-Y", "topic == demo.orders"))
    for each in given:
        expected = {
            "lamp": f"{place}, line 4: JSONDecodeError",
            "clock": f"{place}: its value is none of JSON's: TypeError",
            "table": f"{place}, line 8: SystemExit",
        }.get(json.loads(each["value"])["item"])
        assert each["value_problem"] is expected is None or re.fullmatch(
            expected, each["value_problem"]
        )
        assert each["key_problem"] == f"{path}: its value is none of JSON's: ValueError"


def test_rules_of_scripts_are_judged_like_ours(
    script: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    path = script(
        SCRIPTS["house_rules.py"]
        + "\n\ndef rule_failing(exchange):\n"
        + "    return exchange.missing\n"
        + "\n\ndef rule_wrong(exchange):\n"
        + "    yield 3\n"
    )
    assert main(["conform", DEMO, "--script", path, "--select", "Z"]) == 1
    out = capsys.readouterr().out
    assert "error Z01 A topic has a name without a dot (92 times; breaks clients)" in out
    assert "  expected  A topic has a name without a dot. Kafka's metrics replace dots" in out
    assert re.search(r"\n  \d+ times: \S+, line \d+: AttributeError \(Z03\)", out)
    assert re.search(r"\n  \d+ times: \S+: TypeError \(Z04\)", out)
    assert main(["conform", DEMO, "--script", path, "--select", "Z", "--ignore", "Z01"]) == 0
    assert "warning Z02 Producers wait for all replicas" in capsys.readouterr().out
    assert main(["conform", "--script", path, "--list", "--select", "Z02"]) == 0
    assert "Producers wait for all replicas" in capsys.readouterr().out
    verdict = conform(open_capture(DEMO, scripts=[path]), select="Z01,Z02")
    assert {each.first.rule.id for each in verdict} == {"Z01", "Z02"}
    assert main(["conform", DEMO, "--select", "Z01"]) == 2


def test_columns_of_scripts_are_shown_and_filtered(
    script: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = script(
        SCRIPTS["teams.py"]
        + "\n\ndef column_shape(exchange):\n"
        + "    return {'topics': list(exchange.topics), 'sizes': (exchange.request_bytes,)}\n"
        + "\n\ndef column_failing(exchange):\n"
        + "    return exchange.topics[0]\n"
        + "\n\ndef column_secret(exchange):\n"
        + "    return ['http://user:hidden@host/']\n"
    )
    names = "client_id,topics,request_bytes,hook.team,hook.shape.topics,hook.shape.sizes"
    given = ("pairs", DEMO, "--script", path, "--columns", names)
    everything = rows(capsys, *given)
    assert len(everything) == len(rows(capsys, "pairs", DEMO))
    for each in everything:
        team, dash, number = (each["client_id"] or "").rpartition("-")
        assert each["hook.team"] == (team if dash and number.isdecimal() else None)
        topics = each["hook.shape.topics"] or []
        assert each["topics"] == ([topics] if isinstance(topics, str) else topics)
        assert each["hook.shape.sizes"] == each["request_bytes"]
    billing = [each for each in everything if each["hook.team"] == "billing"]
    assert billing
    assert rows(capsys, *given, "-Y", 'hook.team == "billing"') == billing
    assert (
        rows(capsys, *given, "-Y", 'hook.team == "billing" and count(hook.shape.topics) >= 0')
        == billing
    )
    found = open_capture(DEMO, scripts=[path]).filter('hook.team == "billing"').exchanges()
    assert len(found) == len(billing)
    records = rows(capsys, "records", DEMO, "--script", path, "-Y", 'hook.team == "billing"')
    assert {each["client_id"].partition("-")[0] for each in records} == {"billing"}
    without = [each for each in everything if not each["topics"]]
    assert main(["pairs", DEMO, "--script", path, "--columns", "api,hook.failing"]) == 0
    line = f"hook.failing: {path}, line 14: IndexError, {len(without)} times"
    assert line in capsys.readouterr().err
    by_team = rows(capsys, "stats", DEMO, "--script", path, "--by", "hook.team,api", "--by", "api")
    totals = {each["api"]: each["count"] for each in by_team if each.get("hook.team") == "billing"}
    assert totals == Counter(each["api"] for each in rows(capsys, *given[:4], "-Y", TEAM))
    tables = open_capture(DEMO, scripts=[path]).stats(by="hook.team")
    assert tables["hook.team"]["count"].to_list() == [len(billing)]
    assert main(["stats", DEMO, "--script", path, "--by", "hook.taem"]) == 2
    assert "no function of --script is column_taem" in capsys.readouterr().err
    secrets = rows(capsys, "stats", DEMO, "--script", path, "--by", "hook.secret")
    assert "hidden" not in str(secrets)
    assert main(["pairs", DEMO, "--script", path, "--columns", "api,hook.secret"]) == 0
    assert "hidden" not in capsys.readouterr().out
    assert main(["pairs", DEMO, "--script", path, "-Y", "hook.taem == 1"]) == 2
    assert "hook.taem: no function of --script is column_taem" in capsys.readouterr().err
    assert main(["pairs", DEMO, "--columns", "api,hook.team"]) == 2
    with pytest.raises(FilterError, match="no hooks take part here"):
        parse("hook.team == 1")


def test_advice_of_scripts_is_reported_like_ours(
    script: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    path = script(
        SCRIPTS["house_advice.py"]
        + "\n\ndef advice_failing(exchange):\n"
        + "    return exchange.missing\n"
        + "\n\ndef advice_many(exchange):\n"
        + "    yield f'{exchange.api} {exchange.correlation_id}'\n"
    )
    given = ["advise", DEMO, "--script", path, "--select", "large-fetches"]
    assert main([*given, "--fail-on", "risky"]) == 1
    out = capsys.readouterr().out
    assert "Consumers get more than their memory has room for: " in out
    assert "max_bytes is " in out
    assert "One response may fill the heap." in out
    found = [each for each in rows(capsys, *given) if each["section"] == "finding"]
    fetches = rows(capsys, "pairs", DEMO, "-Y", f"({found[0]['filter']})")
    assert found[0]["count"] == len(fetches)
    assert found[0]["packets"][0] == min(each["request_packet"] for each in fetches)
    assert {each["setting"] for each in found} <= {
        "Our services have 64 MiB for records: set fetch.max.bytes to 16 MiB.",
        None,
    }
    exchanges = len(rows(capsys, "pairs", DEMO))
    report = advise(open_capture(DEMO, scripts=[path]), select="many,failing")
    assert sum(each.count for each in report) == report.judged["many"] == exchanges
    assert len({each.found.split()[0] for each in report}) > 5
    ((reason, count),) = report.unjudged["failing"].items()
    assert count == exchanges
    assert re.fullmatch(re.escape(path) + r", line \d+: AttributeError", reason)
    assert main(["advise", "--script", path, "--explain", "large-fetches"]) == 0
    assert path in capsys.readouterr().out
    assert main([DEMO, "--script", path, "-T", "ndjson"]) in (0, 1)
    assert '"advice:large-fetches"' in capsys.readouterr().out
    assert main(["advise", DEMO, "--select", "large-fetches"]) == 2
    taken = script("def advice_tiny_batches(exchange): ...\n")
    assert main(["advise", DEMO, "--script", taken]) == 2
    assert "there is an advice 'tiny-batches' already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import nothing_of_this_name", "line 1: ModuleNotFoundError: No module named"),
        ("def value(", "line 1: '(' was never closed"),
        ("x = 1\nraise SystemExit(0)", "line 2: SystemExit: 0"),
        ("from json import loads as value", "no function in it is named value, key, rule"),
        (None, "no such file"),
    ],
)
@pytest.mark.parametrize("command", ["records", "conform"])
def test_a_script_that_cannot_be_run_is_one_line(
    command: str,
    code: str | None,
    message: str,
    script: Write,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = "missing.py" if code is None else script(code)
    assert main([command, DEMO, "--script", path]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"kafkashark: --script {path}: ")
    assert message in line


def test_hooks_of_packages_follow_those_of_scripts(
    script: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = [
        EntryPoint("good", "json:loads", "kafkashark.values"),
        EntryPoint("broken", "no_such_package:value", "kafkashark.values"),
    ]
    monkeypatch.setattr(
        "importlib.metadata.entry_points",
        lambda group: [each for each in installed if each.group == group],
    )
    warnings: list[str] = []
    path = script("def value_a(record): ...\ndef value_b(record): ...\n")
    found = find_hooks("value", [path], warnings.append)
    assert [each.name for each in found] == [Path(path).stem] * 2 + ["good"]
    assert [each.label for each in found] == ["a", "b", "good"]
    assert warnings == [
        "the hook broken (no_such_package:value) can't be loaded: ModuleNotFoundError"
    ]
    assert found[-1].failure(ValueError("secret")) == "json:loads: ValueError"
    assert hook_functions.find_hooks("rule", [], warnings.append) == []


def test_secrets_in_what_a_rule_yields_are_masked(
    script: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wire = tcp_captures.Wire()
    connection = wire.connect().syn()
    connection.client(cli_traffic.request_frame(cli_traffic.HEARTBEAT, 4, 1, group_id="g"))
    connection.broker(cli_traffic.response_frame(cli_traffic.HEARTBEAT, 4, 1))
    capture = str(tcp_captures.write(tmp_path / "a.pcap", wire.packets))
    path = script("def rule(exchange):\n    return 'x\\x1b[2J\\n\\nto http://user:hidden@host/'\n")
    assert main(["conform", capture, "--script", path, "--select", "Z"]) == 1
    out = capsys.readouterr().out
    assert "hidden" not in out
    assert "\x1b" not in out
