"""The house keeps its own rules."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import dissector
from tools import api_table

ROOT = Path(__file__).parents[1]
PACKAGES = ("dissector", "conform", "replay", "pipeline")
MODULES = sorted(
    path.relative_to(ROOT).with_suffix("").as_posix()
    for room in ("dissector", "conform", "replay", "pipeline")
    for path in (ROOT / room).rglob("*.py")
    if path.name not in ("__init__.py", "__main__.py") and path.parent.name != "apis"
)
"""All modules but those of `protocol/apis`, which `protocol/test_apis.py` holds."""

HELD_BY = {
    "capture/test_files": "compressed cursor octets pcap pcapng records source",
    "capture/test_layers": "assigned headers internet links networks tunnels",
    "capture/test_order": "rows",
    "capture/test_tcp": "columns connections live release stream tally",
    "cli/test_pairs": "view/bodies",
    "engine/test_conversations": "cutting objects pairing tables talks tell",
    "engine/test_fields": "field_columns field_frame field_rest field_secrets",
    "engine/test_known": "fact_loop fact_message fact_notes fact_tables",
    "engine/test_tape": "tape_loop wire",
    "filter/test_display": "kinds names",
    "filter/test_grammar": "literals nodes",
    "view/test_body_texts": (
        "body_fragments body_loop body_program body_record body_records body_scalars"
    ),
    "view/test_rows": "cells render render_text",
    "view/test_tree": "batches fields",
    "protocol/test_wire": "structs",
    "protocol/embedded/test_declarations": (
        "assignors cluster_metadata cluster_nodes connect_protocol consumer_protocol "
        "control_records group_coordinator principal share_coordinator share_group_coordinator "
        "streams_group_coordinator transaction_coordinator"
    ),
}
"""
Test file -> modules that it holds and that have none of their own: parts that only make sense
together, and declarations, which are data. This list may only shrink.
"""

REPLAY_HELD_BY = {
    "test_cli": "secured setting written",
    "test_learn": "contents",
    "test_link": "asked negotiation",
    "test_plan": "maker sessions_seen step",
    "test_report": "outcome",
    "test_rewrite": "refusal",
    "test_roles": "role_table",
    "test_run": "asking player stage",
    "test_versions": "version_table",
    "test_world": "brokers to_captured to_live",
}
"""The same of `replay`."""

PIPELINE_HELD_BY = {
    "test_docs": "query",
    "test_finish": "names",
    "test_job": "stages summaries",
    "test_local": "dissect feeds index",
    "test_parcels": "packing segments",
    "test_tables": "messages problems schemas",
    "test_kept": "incoming",
}
"""The same of `pipeline`."""

CONFORM_HELD_BY = {
    "probe/test_drive": "probe/probe",
    "probe/test_mock": (
        "probe/probes/admin probe/probes/closing probe/probes/fetch probe/probes/groups "
        "probe/probes/hello probe/probes/metadata probe/probes/names probe/probes/order "
        "probe/probes/produce probe/probes/sasl probe/probes/tags probe/probes/transactions "
        "probe/probes/versions"
    ),
    "probe/test_releases": "probe/release_table",
    "rules/test_groups": "group_id rules/assignments",
}
"""The same of `conform`; the probes are held by the brokers that keep them and the lies too."""

MAX_LINES = 400

PLACES = re.compile(r"(?<![\w.\-])/(home|Users|root|work|mnt)/\w|\b[A-Z]:\\\w")
"""Paths that only one machine has."""


def _held() -> dict[str, str]:
    """Return for each module that has no test of its own the test that holds it."""
    dissected = {
        f"dissector/{name}" if "/" in name else f"dissector/{Path(test).parent}/{name}": (
            f"dissector/{test}"
        )
        for test, names in HELD_BY.items()
        for name in names.split()
    }
    rooms = {"conform": CONFORM_HELD_BY, "replay": REPLAY_HELD_BY, "pipeline": PIPELINE_HELD_BY}
    others = {
        f"{room}/{name}": f"{room}/{test}"
        for room, held in rooms.items()
        for test, names in held.items()
        for name in names.split()
    }
    return dissected | others


@pytest.mark.parametrize("module", MODULES)
def test_every_module_has_its_test(module: str) -> None:
    path = Path(module)
    own = ROOT / "tests" / path.parent / f"test_{path.name}.py"
    other = _held().get(module)
    if other is None:
        assert own.exists(), f"{module} has no test: write {own.relative_to(ROOT)}"
    else:
        assert (ROOT / f"tests/{other}.py").exists()
        assert not own.exists(), f"{module} has its own test now: take it off HELD_BY"


def test_nothing_is_held_that_there_is_not() -> None:
    assert _held().keys() <= set(MODULES)


def test_the_public_face_is_what_it_says() -> None:
    assert dissector.__all__ == sorted(dissector.__all__)
    with pytest.raises(AttributeError):
        dissector.MAX_FRAME_BYTES  # noqa: B018  (that public module uses it does not publish it)
    for name in dissector.__all__:
        assert getattr(dissector, name).__doc__, f"{name} says nothing of itself"


@pytest.mark.parametrize("package", PACKAGES)
def test_files_are_short(package: str) -> None:
    lines = {
        path.relative_to(ROOT).as_posix(): path.read_text().count("\n")
        for path in (ROOT / package).rglob("*.py")
    }
    assert {name for name, count in lines.items() if count > MAX_LINES} == set()


def test_the_table_of_apis_is_current() -> None:
    text = api_table.README.read_text()
    assert text == api_table.written_into(text), "make it anew: python -m tools.api_table --write"


def test_the_table_of_apis() -> None:
    lines = api_table.table().splitlines()
    assert len(lines) == 2 + 94
    assert lines[2] == "| 0 | Produce | 0-13 | 9 |"
    assert lines[2 + 17] == "| 17 | SaslHandshake | 0-1 | never |"
    with pytest.raises(SystemExit):
        api_table.written_into("no marks")


def test_no_file_names_a_place_of_one_machine() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("this is no checkout")
    found = []
    for name in filter(None, listed.stdout.decode().split("\0")):
        path = ROOT / name
        if path.is_file() and b"\0" not in (data := path.read_bytes()):
            text = data.decode(errors="replace")
            found += [f"{name}: {match[0]}" for match in PLACES.finditer(text)]
    assert not found
