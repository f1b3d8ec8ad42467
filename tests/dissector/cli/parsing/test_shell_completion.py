"""Completion in shells: what is offered, and the scripts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dissector.cli.app import COMPLETION_VARIABLE
from dissector.cli.parsing import shell_completion
from dissector.cli.parsing.shell_completion import SHELLS
from tests.dissector.cli.conftest import Run

SCRIPT = "teams.py"


@pytest.fixture
def offered(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Complete a command line as a shell does."""

    def complete(shell: str, *words: str) -> object:
        monkeypatch.setenv(COMPLETION_VARIABLE, shell)
        done = run(*words)
        assert (done.status, done.err) == (0, "")
        return done.lines

    return complete  # type: ignore[return-value]


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["pai"], {"pairs"}),
        (["re"], {"records", "replay", "report"}),
        (["--v"], set()),
        (["pairs", "--li"], {"--limit", "--list-columns", "--list-fields"}),
        (["pairs", "a.pcap", "-V", "--bo"], {"--bodies"}),
        (["pipeline", "--no"], {"--no-summaries"}),
        (["serve", "--upstream-tls-c"], {"--upstream-tls-ca", "--upstream-tls-certificate"}),
        (["pairs", "--columns", "api,lat"], {"api,latency_ms"}),
        (["pairs", "-e", "request.ack"], {"request.acks", "request.ack_when_committed"}),
        (["records", "--sort", "off"], {"offset"}),
        (["records", "--sort", "-off"], {"-offset"}),
        (["pairs", "-Y", "kafka.consumer_g"], {"kafka.consumer_group"}),
        (["pairs", "-Y", "'api == Prod"], {"api == Produce"}),
        (["records", "-Y", "header.N"], {"header.NAME"}),
        (["schema", "Prod"], {"Produce"}),
        (["schema", "Produce", "1"], set()),
        (["streams", "-T", "par"], {"parquet"}),
        (["streams", "--format=par"], {"--format=parquet"}),
        (["streams", "--format", "=", "par"], {"parquet"}),
        (["streams", "--format", "="], {"table", "ndjson", "csv", "parquet"}),
        (["streams", "-T", "csv", "--colo"], {"--color"}),
        (["dissect", "--color", "al"], {"always"}),
        (["dissect", "-t", "a"], {"a", "ad"}),
        (["dissect", "-T", "f"], {"fields"}),
        (["stats", "--by", "minute,cl"], {"minute,client"}),
        (["upgrade", "--to", "4."], {"4.0", "4.1", "4.2", "4.3", "4.4"}),
        (["groups", "--columns", "high"], {"high_watermark"}),
        (["timeline", "--kind", "gr"], {"group"}),
        (["conform", "--select", "F,B0"], {"F,B01"}),
        (["conform", "--fail-on", "w"], {"warning"}),
        (["export", "--keep", "top"], {"topic"}),
        (["replay", "--allow", "deletet"], {"DeleteTopics"}),
        (["replay", "--offsets", ""], {"kept", "earliest", "latest"}),
        (["pairs", "--script", SCRIPT, "--columns", "api,hook.t"], {"api,hook.team"}),
        (["pairs", f"--script={SCRIPT}", "-Y", "error and hook."], {"error and hook.team"}),
        (["stats", "--script", SCRIPT, "--by", "api,ho"], {"api,hour", "api,hook.team"}),
        # Where nothing is offered, the shell completes files.
        (["pairs", ""], set()),
        (["pairs", "-o", "--a"], set()),
        (["serve", "--fault", "x", ""], set()),
        (["nonsense", "--"], set()),
        (["pairs", "-Y", "request.nonsense"], set()),
    ],
)
@pytest.mark.parametrize("shell", SHELLS)
def test_words_are_completed(
    offered: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    shell: str,
    words: list[str],
    expected: set[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / SCRIPT).write_text("def column_team(exchange): ...\nraise SystemExit\n")
    separator = {"zsh": ":", "fish": "\t"}.get(shell)
    lines = offered(shell, *words)
    found = {each.split(separator)[0] if separator else each for each in lines}
    assert found >= expected
    assert len(expected) > 1 or len(found) <= 12
    assert bool(found) == bool(expected)


def test_shells_that_show_them_get_meanings(offered: Run) -> None:
    assert "--bodies\tAdd the decoded bodies as request and response" in offered(
        "fish", "pairs", "--bo"
    )
    assert "demo:Show the main commands on the included capture" in offered("zsh", "de")
    assert (
        "replay\tReplay captured requests at another broker, with its ids, and compare the "
        in (offered("fish", "repl")[0]) + " "
    )


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes(tmp_path: Path) -> None:
    script = tmp_path / "kafkashark.sh"
    script.write_text(SHELLS["bash"].script)
    program = Path(sys.executable).with_name("kafkashark")
    code = (
        f"source {script}; COMP_WORDS=(kafkashark pairs --columns api,lat more); COMP_CWORD=3;"
        f"_kafkashark_completion {program}; printf '%s\\n' \"${{COMPREPLY[@]}}\";"
        "complete -p kafkashark"
    )
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "api,latency_ms",
        "complete -o default -F _kafkashark_completion kafkashark",
    ]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_sound(shell: str, tmp_path: Path) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"needs {shell}")
    script = tmp_path / "script"
    script.write_text(SHELLS[shell].script)
    subprocess.run([program, "-n", script], check=True, capture_output=True)


@pytest.mark.parametrize("shell", SHELLS)
def test_installation(
    good: Run, shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(shell_completion, "current_shell", lambda: shell)
    kept = SHELLS[shell].settings
    if kept:
        (tmp_path / kept).write_text("alias ll='ls -l'")
    assert good("--show-completion").out == SHELLS[shell].script
    for _ in range(2):
        assert f"{shell} completion is installed in {tmp_path}" in good("--install-completion").out
    assert (tmp_path / SHELLS[shell].file).read_text() == SHELLS[shell].script
    if kept:
        lines = (tmp_path / kept).read_text().splitlines()
        assert lines == ["alias ll='ls -l'", SHELLS[shell].loading]


def test_the_current_shell(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getppid", lambda: os.getpid())  # python, which is no shell
    monkeypatch.setenv("SHELL", "/usr/bin/fish")
    assert shell_completion.current_shell() == "fish"
    monkeypatch.setenv("PATH", str(tmp_path))  # without ps
    assert shell_completion.current_shell() == "fish"
    monkeypatch.setenv("SHELL", "/bin/dash")
    said = "kafkashark: completion exists for bash, zsh, fish: set SHELL to one of them\n"
    assert run("--show-completion") == (2, "", said)
