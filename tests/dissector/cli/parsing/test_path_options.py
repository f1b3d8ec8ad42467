"""Every option of every command that names a path has a role, and outputs spare inputs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dissector.cli.app import COMMANDS
from dissector.cli.declared.row_options import PairOptions
from dissector.cli.parsing.command_table import CommandTable
from dissector.cli.parsing.declarations import Command, Options, value_types
from dissector.cli.parsing.path_options import name_of, named_paths
from dissector.file_roles import Reads
from tests.dissector.cli.conftest import Run
from tests.dissector.cli.test_process import ended

NO_PATHS = {
    *("FILTER", "FORMAT", "N", "N|all", "S", "P", "API", "RULE", "RULES", "KIND", "KIND,..."),
    *(
        "KEY[,KEY]",
        "NAME",
        "NAME[:PASSWORD]",
        "NAME,NAME",
        "[-]COLUMN",
        "SEVERITY",
        "MECHANISM",
        "RELEASE",
        "PATTERN",
    ),
    *("IFACE", "BPF", "duration:S|packets:N|filesize:KB", "files:N,filesize:KB", "OLD=NEW", "K=V"),
    *(
        "HOST",
        "HOST:PORT",
        "HOST[:PORT]",
        "HOST:PORT[,...]",
        "HOST:PORT[,...]|mock",
        "recorded|FACTOR|none",
        "[-- COMMAND...]",
        "TOPIC=FORMAT",
        *("ADVICES", "ADVICE", "ADVICE.NAME=N", "RANK"),
        "value.FIELD",
        "text|struct",
        "URL",
        "ZONE",
        *("TIME", "NAME=VALUE"),
    ),
    *("kept|earliest|latest", "TABLE[,TABLE]", "PATH[,PATH]|all", "VERSION", "I/N"),
    "'FILTER' ERROR|delay:MS|close|truncate[,times:N]",
    *("a|ad|r|d|e|u|ud", "auto|always|never", "[-]COLUMN,...", "[API]", "N|max|auto", "p99>50ms"),
    "differs|error|missing|unsupported|unbalanced|latency:p99>2x|nothing",
    "java|librdkafka|franz-go|sarama",
}
"""The words for values of options that name no path."""

ROLES = {
    "advise": "CAPTURE < --keylog < --schemas < --script < --topic-names < --value-format < "
    "--values < -o > -w >",
    "browse": "CAPTURE < --keylog < --schemas < --script < --topic-names < --value-format < "
    "--values < -w >",
    "conform": "CAPTURE < --baseline < --keylog < --sasl-secret < --schemas < --script < --tls-ca "
    "< --tls-certificate < --tls-key < --topic-names < --value-format < --values < "
    "--write-baseline > -o > -w >",
    "demo": "--save >",
    "dissect": "CAPTURE < --keylog < --schemas < --script < --topic-names < --value-format < "
    "--values < -o > -w >",
    "export": "CAPTURE < --key < --keylog < --map > --schemas < --script < --topic-names < "
    "--value-format < --values < -o >",
    "exporter": "CAPTURE < --keylog < --schemas < --script < --topic-names < --value-format < "
    "--values < -o > -w >",
    "groups": "CAPTURE < --keylog < --schemas < --script < --topic-names < --value-format < "
    "--values < -o > -w >",
    "pairs": "CAPTURE < --keylog < --schemas < --script < --topic-names < --value-format < "
    "--values < --with < -o > -w >",
    "pipeline": "[CAPTURE|DIR|GLOB] < --keylog < --out > --schemas < --script < --topic-names < "
    "--value-format < --values < --watch <",
    "record": "--listener-tls-ca < --listener-tls-certificate < --listener-tls-key < "
    "--sasl-secret < --tls-ca < --tls-certificate < --tls-key < -o >",
    "records": "CAPTURE < --keylog < --schemas < --script < --topic-names < --value-format < "
    "--values < -o > -w >",
    "replay": "CAPTURE < --accept < --keylog < --noise < --report > --sasl-secret < --schemas < "
    "--script < --target-profile < --tls-ca < --tls-certificate < --tls-key < --topic-names < "
    "--value-format < --values < --write-accepted >",
    "report": "CAPTURE < --keylog < --schemas < --script < --topic-names < --value-format < "
    "--values < -o >",
    "schema": "--schemas < -o >",
    "schemas": "CAPTURE < --keylog < --schemas < --script < --topic-names < --value-format < "
    "--values < -o > -w >",
    "serve": "CAPTURE < --keylog < --record > --report > --sasl-secret < --schemas < --tls-ca < "
    "--tls-certificate < --tls-key < --topic-names < --upstream-sasl-secret < --upstream-tls-ca < "
    "--upstream-tls-certificate < --upstream-tls-key <",
    "stats": "CAPTURE < --keylog < --schemas < --script < --topic-names < --value-format < "
    "--values < -o > -w >",
    "streams": "CAPTURE < --keylog < --schemas < --script < --topic-names < --value-format < "
    "--values < --write > -o > -w >",
    "timeline": "CAPTURE < --keylog < --otlp > --schemas < --script < --topic-names < "
    "--value-format < --values < -o > -w >",
    "upgrade": "CAPTURE < --keylog < --schemas < --script < --topic-names < --value-format < "
    "--values < -o > -w >",
    "wireshark": "CAPTURE < --keylog < --schemas < --script < --topic-names < --value-format < "
    "--values < -o >",
}
"""The paths of each command: `<` is read, `>` is written."""


def commands() -> list[Command]:
    """Return our commands, also those that are installed as others are."""
    own = [each for each in CommandTable(COMMANDS).all() if each.options is not Options]
    assert {each.name for each in own} >= ROLES.keys()
    return [each for each in own if each.name in ROLES]


def paths_of(command: Command) -> str:
    """Return the paths of a command, arguments first."""
    found = [
        f"{name_of(each)} {'<' if isinstance(each.role, Reads) else '>'}"
        for each in command.options.declared().values()
        if each.role is not None
    ]
    return " ".join(sorted(found, key=lambda text: (text.startswith("-"), text)))


def test_each_path_has_its_role() -> None:
    assert {each.name: paths_of(each) for each in commands()} == ROLES


def test_each_text_is_a_path_with_a_role_or_known_to_be_none() -> None:
    unknown = []
    for command in commands():
        types = value_types(command.options)
        for name, each in command.options.declared().items():
            is_text = types[name].each in (str, tuple) and each.metavar not in NO_PATHS
            if each.role is None and (is_text or types[name].each is Path):
                unknown.append((command.name, name, each.metavar))
    assert unknown == []


CONFLICTS = {
    "conform a.pcap --write-baseline a.pcap": "a.pcap is read (CAPTURE); --write-baseline",
    "conform b.pcap --baseline k --write-baseline k": "k is read (--baseline); --write-baseline",
    "conform a.pcap -o c --write-baseline ./c": "is written (--write-baseline); -o",
    "timeline a.pcap --otlp a.pcap": "a.pcap is read (CAPTURE); --otlp",
    "replay a.pcap --to mock --write-accepted a.pcap": "is read (CAPTURE); --write-accepted",
    "replay a.pcap --to mock --report hard.ndjson": "hard.ndjson is the same file as a.pcap",
    "replay a.pcap --to mock --report r.txt --report r.txt": "r.txt is written (--report)",
    "serve a.pcap --record a.pcap": "a.pcap is read (CAPTURE); --record",
    "serve a.pcap --tls-key k --record k": "k is read (--tls-key); --record",
    "pairs a.pcap --keylog k -o k": "k is read (--keylog); -o",
    "pairs -i lo --keylog k -w k": "k is read (--keylog); -w",
    "export a.pcap --redact --key k -o k": "k is read (--key); -o",
    "report a.pcap -o link": "link is the same file as a.pcap, which is read (CAPTURE); -o",
    "streams 0-a.bin --write .": "is read (CAPTURE); --write",
    "pipeline records/a.pcap --out . --overwrite": "is read ([CAPTURE|DIR|GLOB]); --out",
    "records a.pcap --value-format a=avro:./k#b -o k": "k is the same file as ./k, which is read",
    "dissect a.pcap --values defs -o defs/Fetch.json": "is read (--values); -o",
    "schema --schemas defs -o defs/Fetch.json": "is read (--schemas); -o",
}


@pytest.mark.parametrize("line", CONFLICTS)
def test_an_output_that_is_an_input_is_refused(
    line: str, run: Run, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("records", "defs"):
        Path(folder).mkdir()
    definition = (
        '{"apiKey": 1, "type": "request", "name": "FetchRequest", "validVersions": "0", '
        '"flexibleVersions": "none", "fields": []}'
    )
    Path("defs/Fetch.json").write_text(definition)
    for name in ("a.pcap", "b.pcap", "0-a.bin", "records/a.pcap"):
        Path(name).write_bytes(shop.read_bytes())
    Path("k").write_bytes(b"some sixteen bytes")
    Path("hard.ndjson").hardlink_to("a.pcap")
    Path("link").symlink_to("a.pcap")
    before = _contents(tmp_path)
    status, out, err = run(*line.split())
    *others, last = err.splitlines()
    assert (status, out) == (2, "")
    assert CONFLICTS[line] in last
    assert all("defs/Fetch.json: key 1" in each for each in others)
    assert _contents(tmp_path) == before


def _contents(folder: Path) -> dict[Path, bytes]:
    return {each: each.read_bytes() for each in folder.rglob("*") if each.is_file()}


@pytest.mark.long
def test_standard_streams_that_are_files(shop: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(shop.read_bytes())
    with path.open("rb") as stdin:
        status, _, err = ended("pairs", "-", "-o", path, stdin=stdin)
    said = f"kafkashark: {path} is the same file as -, which is read (CAPTURE); -o "
    assert (status, err.decode()) == (2, said + "would overwrite it\n")
    if Path("/dev/stdin").exists():
        with path.open("rb") as stdin:
            assert ended("pairs", "/dev/stdin", "-o", path, stdin=stdin)[0] == 2
    with path.open("ab") as stdout:
        status, _, err = ended("pairs", path, stdout=stdout)
    said = f"kafkashark: {path} is read (CAPTURE), and standard output is written to it\n"
    assert (status, err.decode()) == (2, said)
    assert path.read_bytes() == shop.read_bytes()
    rows = tmp_path / "rows"
    with rows.open("wb") as stdout:
        assert ended("pairs", path, "-o", "/dev/stdout", stdout=stdout)[0] == 0
    assert rows.stat().st_size


def test_definitions_of_the_environment_are_inputs(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "defs"
    folder.mkdir()
    file = folder / "Own.json"
    file.write_text("precious")
    monkeypatch.setenv("KAFKASHARK_SCHEMAS", f"{os.devnull}{os.pathsep}{folder}")
    found = sorted(named_paths(PairOptions(captures=["a"], output="b")))
    assert [(each.path, each.option) for each in found] == sorted(
        [
            *(("a", "CAPTURE"), ("b", "-o")),
            *((os.devnull, "--schemas"), (str(folder), "--schemas")),
        ]
    )
