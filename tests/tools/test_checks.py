"""Parts of the checks run side by side; all of them end, and one that fails fails the run."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import yaml

from tools import checks, shares

ROOT = Path(__file__).parents[2]

MAKEFILE = """
lint: ; @echo lint of $(SHARE)-$(WORKERS)
test: ; @echo test of $(SHARE)
long: ; @echo long of $(SHARE)
bad: ; @echo before >&2; exit 3
# Each waits for the other: they end only if both run at the same time.
left: ; @echo a > to-right && cat to-left
right: ; @cat to-right && echo b > to-left
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a Makefile; variables of an outer make don't reach it."""
    for name in ("MAKEFLAGS", "SHARE", "WORKERS"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "Makefile").write_text(MAKEFILE)
    return tmp_path


def output(folder: Path, capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    return checks.main(words, folder), capfd.readouterr().out


def test_each_part_is_printed_under_its_name_with_its_time(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    status, text = output(folder, capfd, "lint,test", "long")
    assert status == 0
    for name in ("lint", "test", "long"):
        assert re.search(rf"^======== {name} \d+:\d\d \(\d+:\d\d\)\n{name} of", text, re.MULTILINE)
    *_, times, whole = text.splitlines()
    assert sorted(re.findall(r"(\w+) \d+:\d\d \(\d+:\d\d\)", times)) == ["lint", "long", "test"]
    assert "in all" in whole
    assert (folder / "build/checks/long.log").read_text() == "long of\n"


def test_a_part_that_fails_fails_the_run_after_all_others(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    status, text = output(folder, capfd, "bad,long", "test")
    assert status == 1
    assert re.search(r"^======== bad .* FAILED\nbefore\n", text, re.MULTILINE)
    assert re.search(r"^bad \S+ \(\S+\) FAILED|, bad \S+ \(\S+\) FAILED", text, re.MULTILINE)
    assert "long of" in text


def test_lanes_run_at_the_same_time(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("to-left", "to-right"):
        os.mkfifo(folder / name)
    status, text = output(folder, capfd, "left", "right")
    assert status == 0
    assert "\na\n" in text
    assert "\nb\n" in text


def test_a_share_is_of_all_but_what_is_the_same_each_time(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shares, "of_commit", lambda _: shares.Share(3, 7))
    _, text = output(folder, capfd, "--share", "lint,test,long")
    assert text.startswith("share 3 of 7")
    assert "\ntest of\n" in text
    assert "\nlong of 3/7\n" in text
    assert text.splitlines()[-1].startswith("share 3 of 7")


def test_the_lanes_of_the_makefile_are_all_parts() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    found = re.search(r"^LANES := (.*)$", text, re.MULTILINE)
    assert found is not None
    parts = re.split("[ ,]", found[1])
    assert sorted(parts) == sorted(
        ["broker", "checked", "lint", "long", "spark", "test", "versions", "wheel-test"]
    )
    for part in parts:
        assert re.search(rf"^{part}: ", text, re.MULTILINE), part


def test_a_scheduled_job_runs_all_tests() -> None:
    path = ROOT / ".github" / "workflows" / "full.yml"
    # YAML 1.1 takes the key "on" for a boolean.
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    (schedule,) = workflow[True]["schedule"]
    assert re.fullmatch(r"\d+ \d+ \* \* \d", schedule["cron"])
    assert workflow["jobs"]["full"]["steps"][-1]["run"] == ".ci/run full"
    assert 'make "${1:-check}"' in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^full: .*\n\t.* tools\.checks \$\(LANES\)$", text, re.MULTILINE)
    assert re.search(r"^check: .*\n\t.* tools\.checks --share \$\(LANES\)$", text, re.MULTILINE)
