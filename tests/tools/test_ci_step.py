"""The action, its script, and the forms of the repository."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from tests import tcp_captures
from tests.dissector.cli import cli_traffic

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / ".ci" / "check-captures"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def check(folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run the step in a folder, with its inputs."""
    given = {f"CHECK_{name.upper()}": value for name, value in inputs.items()}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    files = {name: str(folder / name) for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    return subprocess.run(
        ["bash", str(SCRIPT)],
        cwd=folder,
        env={**os.environ, "PATH": path, **files, **given},
        capture_output=True,
        text=True,
    )


@pytest.mark.long
def test_the_step_reports_in_all_forms_and_fails_as_the_command(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    (tmp_path / "a b" / "-x.pcap").symlink_to(ROOT / "captures" / "kafka4-denied.pcap")
    done = check(tmp_path, captures="\n  \na b/*.pcap\n", command="findings", fail_on="costs")
    assert done.returncode == 1, done.stderr
    report = tmp_path / "kafkashark-report"
    text = (report / "report.txt").read_text()
    assert "What stands out" in text
    assert text in done.stdout
    assert json.loads((report / "report.sarif").read_text())["runs"][0]["results"]
    assert ElementTree.parse(report / "report.xml").getroot().get("tests")
    assert (report / "report.html").read_text().startswith("<!")
    summary = (tmp_path / "GITHUB_STEP_SUMMARY").read_text().splitlines()
    assert summary[0] == "## kafkashark findings"
    assert all(not line or line.startswith("    ") for line in summary[1:])
    assert (tmp_path / "GITHUB_OUTPUT").read_text().splitlines() == [
        "sarif=kafkashark-report/report.sarif",
        "junit=kafkashark-report/report.xml",
    ]
    assert check(tmp_path, captures="a b/*.pcap", command="findings").returncode == 0


@pytest.mark.long
def test_names_in_captures_are_no_commands_of_the_runner(tmp_path: Path) -> None:
    wire = tcp_captures.Wire()
    connection = wire.connect().syn()
    asked = {"topics": [{"name": "x\n::error::owned\n```\n# x"}]}
    connection.client(cli_traffic.request_frame(3, 9, 1, **asked))
    tcp_captures.write(tmp_path / "a.pcap", wire.packets)
    done = check(tmp_path, captures="a.pcap", command="findings")
    assert done.returncode == 0, done.stderr
    first, *between, last = done.stdout.splitlines()
    token = first.removeprefix("::stop-commands::")
    assert re.fullmatch("[0-9a-f]{32}", token)
    assert last == f"::{token}::"
    assert not [line for line in between if line.lstrip().startswith("::")]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"captures": ""}, "captures: no name is given"),
        ({"captures": "missing*.pcap"}, "captures: no file is named missing*.pcap"),
        ({"captures": "a", "command": "replay; id"}, "command is conform, advise or findings"),
    ],
)
def test_wrong_inputs_are_one_line(tmp_path: Path, inputs: dict[str, str], message: str) -> None:
    done = check(tmp_path, **inputs)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(message)


def test_the_action_gives_its_inputs_to_the_script_by_variables() -> None:
    action = read(ROOT / "action.yml")
    *_, last = action["runs"]["steps"]
    for name in action["inputs"]:
        variable = f"CHECK_{name.replace('-', '_').upper()}"
        assert last["env"][variable] == f"${{{{ inputs.{name} }}}}"
        assert variable in SCRIPT.read_text(encoding="utf-8")
    for step in action["runs"]["steps"]:
        assert "${{" not in step.get("run", "")  # an input in a script would be code
    assert set(action["outputs"]) == {"sarif", "junit"}
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in page for name in action["inputs"])


def test_actions_are_pinned_to_commits() -> None:
    for path in (*WORKFLOWS, ROOT / "action.yml"):
        used = re.findall(r"uses: (.*)", path.read_text(encoding="utf-8"))
        assert used
        for each in used:
            assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each), (path.name, each)


def test_the_release_attests_what_it_publishes() -> None:
    publish = read(ROOT / ".github" / "workflows" / "release.yml")["jobs"]["publish"]
    uses = [step.get("uses", "").partition("@")[0] for step in publish["steps"]]
    assert uses.index("actions/attest-build-provenance") < uses.index("pypa/gh-action-pypi-publish")
    rights = {"id-token", "attestations", "contents"}
    assert publish["permissions"] == dict.fromkeys(rights, "write")


def test_forms_of_issues_ask_for_redacted_captures() -> None:
    folder = ROOT / ".github" / "ISSUE_TEMPLATE"
    forms = [read(path) for path in folder.glob("*.yml") if path.name != "config.yml"]
    for form in forms:
        assert form["name"]
        assert form["description"]
        ids = [each["id"] for each in form["body"]]
        assert len(ids) == len(set(ids))
    (bug,) = (form for form in forms if form["name"] == "Bug")
    assert "--redact" in yaml.safe_dump(bug)
    (link,) = read(folder / "config.yml")["contact_links"]
    assert link["url"] in (ROOT / "SECURITY.md").read_text(encoding="utf-8")
