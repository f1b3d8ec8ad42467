"""Settings of a project: what their file gives commands, and what of it is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from dissector.cli.presentation.completion import complete_filter
from dissector.cli.settings import settings_file as found_file
from tests.dissector.cli.conftest import Run
from tests.replay.support.replay_captures import SHIPPED

CAPTURE = SHIPPED / "demo.pcap"
PORT = "27891"

SETTINGS = """
port = 9092
keylog = ["keys/tls.log"]
value-format = "orders=avro:order.avsc"
times = "e"

[filters]
slow = "latency_ms > 50"
slow-errors = "@slow and error"
text = "client_id == '@slow'"

[pairs]
columns = ["request_packet", "api"]

[advise.tiny-batches]
records = 3
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a project; the current folder is one inside of it."""
    inside = tmp_path / "sub" / "sub"
    inside.mkdir(parents=True)
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "tls.log").touch()
    monkeypatch.chdir(inside)
    return tmp_path


def rows(done: str) -> dict[str, tuple[object, str]]:
    """Return what `config` printed by setting."""
    found = [json.loads(line) for line in done.splitlines()]
    return {row["setting"]: (row["value"], row["from"]) for row in found}


def test_the_nearest_file_holds(project: Path, good: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "pyproject.toml").write_text("[tool.kafkashark]\nport = 1\n")
    assert rows(good("config", "-T", "ndjson").out)["port"] == ([1], f"{project}/pyproject.toml")
    (project / "kafkashark.toml").write_text("port = 2\n")
    assert rows(good("config", "-T", "ndjson").out)["port"] == ([2], f"{project}/kafkashark.toml")
    (project / "sub" / "pyproject.toml").write_text("[tool.other]\n# kafkashark\n")
    assert rows(good("config", "-T", "ndjson").out)["port"][0] == [2]
    monkeypatch.setenv("KAFKASHARK_CONFIG", str(project / "pyproject.toml"))
    assert rows(good("config", "-T", "ndjson").out)["port"][0] == [1]
    monkeypatch.setenv("KAFKASHARK_CONFIG", "")
    assert "no settings" in good("config").out


def test_config_shows_what_holds(project: Path, good: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    file = project / "kafkashark.toml"
    file.write_text(SETTINGS)
    monkeypatch.setenv("KAFKASHARK_SCHEMAS", "a.jar")
    assert rows(good("config", "-T", "ndjson").out) == {
        "times": ("e", str(file)),
        "schemas": (["a.jar"], "$KAFKASHARK_SCHEMAS"),
        "port": ([9092], str(file)),
        "keylog": ([f"{project}/keys/tls.log"], str(file)),
        "value-format": ([f"orders=avro:{project}/order.avsc"], str(file)),
        "pairs.columns": ("request_packet,api", str(file)),
        "advise.tiny-batches.records": (3, str(file)),
        "filters.slow": ("latency_ms > 50", str(file)),
        "filters.slow-errors": ("(latency_ms > 50) and error", str(file)),
        "filters.text": ("client_id == '@slow'", str(file)),
    }


@pytest.mark.parametrize("form", ["table", "ndjson"])
def test_config_shows_no_credentials(form: str, project: Path, good: Run) -> None:
    (project / "kafkashark.toml").write_text('values = ["https://bob:pw-of-bob@registry", "other"]')
    printed = good("config", "-T", form).out
    assert "pw-of-bob" not in printed
    assert "other" in printed


@pytest.mark.parametrize("words", [("config",), ("pairs", CAPTURE), (CAPTURE,)])
def test_no_output_overwrites_the_settings(words: tuple, project: Path, run: Run) -> None:
    file = project / "kafkashark.toml"
    file.write_text("port = 1")
    done = run(*words, "-o", file)
    assert (done.status, len(done.err.splitlines())) == (2, 1)
    assert "is read (settings); -o would overwrite it" in done.err
    assert file.read_text() == "port = 1"


def test_settings_are_defaults_of_options(project: Path, good: Run, run: Run) -> None:
    (project / "kafkashark.toml").write_text("port = 1\n[pairs]\ncolumns = 'request_packet,api'\n")
    assert good("pairs", CAPTURE, "--port", PORT, "-c", "1", "-T", "csv").lines == [
        "request_packet,api",
        "4,ApiVersions",
    ]
    assert "on the ports of --port" in run("pairs", CAPTURE).err, "port 1 holds for all commands"
    assert good("pairs", CAPTURE, "--port", PORT, "--columns", "api", "-c", "1").lines[0] == "api"


def test_names_of_filters_are_completed(project: Path) -> None:
    (project / "kafkashark.toml").write_text(SETTINGS)
    assert complete_filter("pairs", "error or @slow-") == ["error or @slow-errors"]
    assert complete_filter("pairs", "error or @none") == []
    (project / "kafkashark.toml").write_text("[")
    assert "@slow" not in complete_filter("pairs", "@"), "no error in a shell"


def test_a_filter_by_its_name(project: Path, good: Run) -> None:
    (project / "kafkashark.toml").write_text('[filters]\nslow = "latency_ms > 50 or error"\n')
    words = "pairs", CAPTURE, "-T", "ndjson", "-Y"
    expected = good(*words, "not (latency_ms > 50 or error) and api == Produce").rows
    assert good(*words, "not @slow and api == Produce").rows == expected != []


def test_thresholds_of_advice(project: Path, good: Run, run: Run) -> None:
    assert run("advise", CAPTURE, "--select", "empty-fetches").status == 0
    text = run("config", "--json-schema").out
    known = json.loads(text)["properties"]["advise"]["properties"]["empty-fetches"]["properties"]
    (project / "kafkashark.toml").write_text(
        "[advise.empty-fetches]\n" + "".join(f"{name} = 0\n" for name in known)
    )
    assert run("advise", CAPTURE, "--select", "empty-fetches", "--fail-on", "informs").status == 1


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool", "kafkashark.toml: no TOML: "),
        ("[[filters]]\nslow = 'x'", "filters: no such setting"),
        ("prot = 9092", "prot: no such setting; did you mean port?"),
        ("[pears]\ncolumns = 'api'", "pears: no such command; did you mean pairs?"),
        ("columns = 'api'", "columns: no such setting"),
        ("[pairs]\ncolumn = 'api'", "pairs.column: no such setting; did you mean columns?"),
        ("output = 'x'", "output: no such setting"),
        ("show-secrets = true", "show-secrets: no such setting"),
        ("port = 'x'", "port: --port takes a whole number 1 to 65535, not 'x'"),
        ("port = [70000]", "port: --port takes a whole number 1 to 65535"),
        ("port = true", "port: must be a text, a number, or an array of them"),
        ("keep-copies = 1", "keep-copies: must be true or false"),
        ("times = 'x'", "times: -t takes a, ad"),
        ("times = ['r', 'a']", "times: must be one value, no array"),
        ("pairs = 1", "pairs: no such setting"),
        ("[filters]\nslow = 1", "filters.slow: must be a text"),
        ("[filters]\n'a b' = 'error'", "filters.a b: a name has letters"),
        ("[filters]\nslow = '@slow'", "filters.slow: names itself"),
        ("[filters]\nslow = 'error'\nsame = '@slwo'", "no filter @slwo in the table filters of "),
        ("[pairs.tiny-batches]\nrecords = 3", "pairs.tiny-batches: no such table"),
        ("[advise.tiny-batch]\nrecords = 3", "advise.tiny-batch: no such table; did you mean tiny"),
        ("[advise.tiny-batches]\nrecord = 3", "no such number; did you mean records?"),
        ("[advise.tiny-batches]\nrecords = true", "must be a number from 0 on, not True"),
        ("[advise.tiny-batches]\nrecords = nan", "must be a number from 0 on, not nan"),
    ],
)
def test_what_is_wrong_is_refused(text: str, message: str, project: Path, run: Run) -> None:
    (project / "kafkashark.toml").write_text(text)
    done = run("config")
    assert (done.status, len(done.err.splitlines())) == (2, 1)
    assert message in done.err


def test_commands_refuse_it_too(project: Path, run: Run) -> None:
    (project / "kafkashark.toml").write_text("prot = 9092")
    assert "did you mean port?" in run("pairs", CAPTURE).err
    (project / "kafkashark.toml").write_text("[pairs]\ncolumn = 'api'")
    assert "did you mean columns?" in run("pairs", CAPTURE).err
    assert "no filter @slow" in run("pairs", CAPTURE, "-Y", "@slow").err
    assert run("pairs", "--help").status == 0, "help needs no settings"


def test_a_filter_grows_within_bounds(project: Path, run: Run) -> None:
    many = "".join(f'f{n} = "{" or ".join([f"@f{n + 1}"] * 50)}"\n' for n in range(7))
    (project / "kafkashark.toml").write_text(f"[filters]\n{many}f7 = 'error'\n")
    assert "more than 65,536 characters" in run("pairs", CAPTURE, "-Y", "@f0").err


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs owners of files")
def test_a_file_of_another_user_is_not_used(
    project: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "kafkashark.toml").write_text("port = 1\n")
    owner = (project / "kafkashark.toml").stat().st_uid
    monkeypatch.setattr(found_file, "TRUSTED_OWNERS", ())
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    done = run("pairs", CAPTURE, "-c", "1", "-T", "csv")
    assert len(done.lines) == 2
    assert "is of another user and not used ($KAFKASHARK_CONFIG names" in done.err


def test_chosen_rules(project: Path, good: Run, run: Run) -> None:
    file = project / "kafkashark.toml"
    file.write_text('[conform]\nselect = ["B", "F"]\nignore = "B"\n[findings]\nignore = "slow"\n')
    listed = [line.split()[0] for line in good("conform", "--list").lines]
    assert {each[0] for each in listed} == {"F"}
    assert good("conform", "--list", "--select", "X", "--ignore", "X01").lines[0].startswith("X02")
    settings = rows(good("config", "-T", "ndjson").out)
    assert settings["conform.ignore"] == (["B"], str(file))
    file.write_text('[conform]\nselect = "Z99"\n')
    assert "Z99" in run("conform", CAPTURE).err
