"""The parser of command lines: forms of options, and its errors."""

from __future__ import annotations

import shlex
import socket
from pathlib import Path
from typing import Any

import pytest

from dissector.cli.app import COMMANDS as BUILTIN
from dissector.cli.parsing.command_line import CalledInsteadError, parse
from dissector.cli.parsing.command_table import CommandTable
from dissector.cli.parsing.declarations import Command, Options, option, with_prefix
from dissector.cli.parsing.first_words import LEADS
from dissector.errors import UsageError
from pipeline.cli import pipeline
from serve.cli import serve
from tests.dissector.cli.conftest import Run

COMMANDS = {each.__name__: Command.of(each.__name__, each) for each in (*BUILTIN, pipeline, serve)}


@pytest.mark.parametrize(
    ("line", "some"),
    [
        ("pairs a.pcap -T ndjson -o out", {"form": "ndjson", "output": "out"}),
        ("pairs a --port=1 b --port 2", {"captures": ("a", "b"), "ports": (1, 2)}),
        ("pairs -c 1 - -c 2", {"captures": ("-",), "limit": 2, "bodies": False}),
        ("pairs a --sort -latency_ms", {"sort": "-latency_ms", "captures": ("a",)}),
        ("pairs a --filter=a==b", {"filter_text": "a==b"}),
        ("pairs a --filter=", {"filter_text": ""}),
        ("pairs a -Tcsv -c5", {"form": "csv", "limit": 5}),
        ("pairs -- -odd.pcap --bodies", {"captures": ("-odd.pcap", "--bodies"), "bodies": False}),
        ("pairs a -- b", {"captures": ("a", "b")}),
        ("dissect -V -Y -T a", {"filter_text": "-T", "verbose": True, "captures": ("a",)}),
        ("dissect -xVc5 a", {"bytes_too": True, "verbose": True, "limit": 5}),
        ("dissect -Vc 5 a", {"verbose": True, "limit": 5, "captures": ("a",)}),
        ("dissect a -e x -e=y", {"fields": ("x", "=y")}),
        ("dissect -i eth0 -w kept", {"captures": (), "file_to_keep": Path("kept")}),
        ("pairs -r a -Y -r -rb -c 5", {"captures": ("a", "b"), "filter_text": "-r", "limit": 5}),
        ("pairs -r -- -odd.pcap", {"captures": ("-odd.pcap",)}),
        ("schema Fetch 12", {"name": "Fetch", "version": 12, "form": "text"}),
        ("schema -T ndjson", {"name": None, "version": None}),
        ("stats a --interval 0.5 --top 3", {"interval": 0.5, "limit": 3}),
        ("upgrade --to 4.4 a", {"to": "4.4", "captures": ("a",)}),
        ("pipeline a --no-summaries", {"summaries": False}),
        ("pipeline a --no-summaries --summaries", {"summaries": True}),
        ("pipeline a", {"summaries": True, "range_mb": 128, "captures": ("a",)}),
        (
            "serve a --fault acks==0 close --fault - delay:5 b",
            {"faults": (("acks==0", "close"), ("-", "delay:5")), "captures": ("a", "b")},
        ),
        (
            "serve a --upstream-sasl PLAIN --upstream-also h:1 --sasl-secret s",
            {"sasl": "PLAIN", "also": ("h:1",), "client_secret": Path("s"), "sasl_secret": None},
        ),
    ],
)
def test_forms_of_options(line: str, some: dict[str, Any]) -> None:
    name, *words = line.split()
    given = parse(COMMANDS[name], words)
    assert {each: getattr(given, each) for each in some} == some


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("pairs", "no input: CAPTURE... or -i IFACE is missing"),
        ("upgrade a", "the following arguments are required: --to (kafkashark upgrade --help)"),
        ("export", "the following arguments are required: CAPTURE... (kafkashark export --help)"),
        ("pairs a --nope", "no option --nope (kafkashark pairs --help)"),
        (
            "pairs a --colour=x",
            "no option --colour; did you mean --color? (kafkashark pairs",
        ),
        ("pairs a --Columns x", "no option --Columns; did you mean --columns? (kafkashark pairs "),
        ("pairs a --col x", "no option --col; did you mean --color? (kafkashark pairs --help)"),
        ("pairs a -q", "no option -q (kafkashark pairs --help)"),
        ("dissect a -Vq", "no option -q (kafkashark dissect --help)"),
        ("pairs a -T", "-T takes FORMAT (kafkashark pairs --help)"),
        ("pairs a -Y -- b", "-Y takes FILTER (kafkashark pairs --help)"),
        ("pairs a --filter=--", "--filter takes FILTER (kafkashark pairs --help)"),
        (
            "pairs a -T jsno",
            "-T takes table, ndjson, csv, parquet, not 'jsno'; did you mean nd",
        ),
        ("pairs a --format xml", "-T takes table, ndjson, csv, parquet, not 'xml'"),
        ("pairs a -t x", "-t takes a, ad, r, d, e, u, ud, not 'x'"),
        (
            "pairs a --color alway",
            "--color takes auto, always, never, not 'alway'; did you mean",
        ),
        ("pairs a --utc=1", "--utc: ignored explicit argument '1' (kafkashark pairs --help)"),
        ("pairs a --port 0", "--port takes a whole number 1 to 65535, not '0'"),
        ("pairs a --port 65536", "--port takes a whole number 1 to 65535, not '65536'"),
        ("pairs a --port kafka", "--port takes a whole number 1 to 65535, not 'kafka'"),
        ("pairs a -c -1", "-c takes a whole number 1 or more, not '-1'"),
        ("stats a --interval nan", "--interval takes a number 0.1 or more, not 'nan'"),
        ("schema Fetch x", "VERSION takes a whole number, not 'x'"),
        ("schema Fetch 1 c", "unexpected argument 'c' (kafkashark schema --help)"),
        ("schema -r a.pcap", "no option -r (kafkashark schema --help)"),
        ("demo a.pcap", "unexpected argument 'a.pcap' (kafkashark demo --help)"),
        ("serve a --fault x", "--fault takes 'FILTER' ERROR|delay:MS|close|truncate[,times:N]"),
        ("conform a --fail-on eror", "--fail-on takes error, warning, note, not 'eror'; did you"),
        ("replay a --offsets late", "--offsets takes kept, earliest, latest, not 'late'; did you"),
        ("pars a", "no command 'pars'; did you mean pairs? (kafkashark --help)"),
        ("a.pcap", "a.pcap: no such file"),
        ("lag a.pcap", "no command 'lag'; run: kafkashark groups CAPTURE"),
        ("--versoin", "no option --versoin; did you mean --version? (kafkashark --help)"),
        ("-- pairs", "unexpected argument 'pairs' (kafkashark --help)"),
    ],
)
def test_errors_say_what_is_possible(run: Run, line: str, said: str) -> None:
    done = run(*line.split())
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith(f"kafkashark: {said}")


def test_leads_are_lines_of_commands() -> None:
    table = CommandTable(BUILTIN)
    for lead in LEADS.values():
        name, *words = shlex.split(lead)
        parse(table.find(name), words)


@pytest.mark.parametrize("words", [["-h"], ["--help", "--port", "0"], ["a", "-Vh"]])
def test_help_needs_nothing_else(run: Run, words: list[str]) -> None:
    done = run("dissect", *words)
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("Usage: kafkashark dissect [OPTIONS] [CAPTURE...]\n")


def test_lists_need_no_capture(run: Run) -> None:
    assert run("groups", "--list-columns").out.startswith("group ")
    assert run("upgrade", "--list-fields").status == 0
    names = [name for _, name in socket.if_nameindex()]
    assert run("pairs", "-D").lines == [f"{n}. {name}" for n, name in enumerate(names, 1)]


class BaseOptions(Options):
    level: int = option("-l", "--level", default=1, least=0, help="A level; see --level.")
    word: str = option(metavar="WORD", help="A word.")


class OwnOptions(BaseOptions):
    level: int = option("--level", default=2, help="Another level.")


class OtherOptions(BaseOptions):
    pass


with_prefix(OtherOptions, "other-")


def run_own(given: OwnOptions) -> None:
    """Do nothing."""


def test_a_class_changes_what_its_base_declares() -> None:
    command = Command.of("own", run_own)
    assert vars(parse(command, ["x"])) == {"level": 2, "word": "x", "help": False}
    with pytest.raises(UsageError, match="no option -l"):
        parse(command, ["x", "-l", "3"])


def test_names_with_a_prefix() -> None:
    level = OtherOptions.declared()["level"]
    assert level.names == ("--other-level",)
    assert level.help == "A level; see --other-level."
    assert BaseOptions.declared()["level"].names == ("-l", "--level")


def test_values_are_typed_and_fixed() -> None:
    given = OwnOptions(word="x")
    assert given.replace(level=3).level == 3
    with pytest.raises(AttributeError, match="level is read-only"):
        given.level = 3  # type: ignore[misc]
    with pytest.raises(TypeError, match="word is required"):
        OwnOptions()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="no option is depth"):
        OwnOptions(word="x", depth=3)  # type: ignore[call-arg]


def test_an_option_of_an_unknown_type_is_refused() -> None:
    class Odd(Options):
        when: complex = option("--when", default=0j, help="A number.")

    def odd(given: Odd) -> None: ...

    odd.__annotations__["given"] = Odd
    with pytest.raises(TypeError, match="an option can't be of type <class 'complex'>"):
        parse(Command.of("odd", odd), [])


def test_what_is_called_instead() -> None:
    with pytest.raises(CalledInsteadError):
        parse(COMMANDS["pairs"], ["--list-fields", "--port", "0"])
