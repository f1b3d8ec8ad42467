"""`python -m tools.release` lists differences of a release, and writes declarations."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from dissector.protocol.apis import NAMES
from dissector.protocol.embedded import cluster_nodes
from dissector.protocol.embedded.log_records import streams_group_coordinator
from tests.tools.release.kafka_definitions import Spec, field, save, spec, specs
from tools.release.__main__ import main

ROOT = Path(__file__).parents[3]
HEARTBEAT = "HeartbeatRequest"


def differences(folder: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the lines of differences."""
    assert main([str(folder)]) == 1
    *lines, count = capsys.readouterr().out.splitlines()
    assert count.startswith(f"differences: {len(lines)}, in ")
    return lines


def test_our_declarations_have_no_difference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in NAMES.values():
        save(tmp_path, *specs(name))
    assert main([str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"no difference in {2 * len(NAMES)} messages\n"


def test_an_older_release_has_no_differences(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request, _ = specs("Produce")
    save(tmp_path, request | {"validVersions": "3-12"})
    assert main([str(tmp_path)]) == 0
    assert capsys.readouterr().out == "no difference in 1 messages\n"


def _new_version(request: Spec) -> None:
    request["validVersions"] = "0-5"


def _new_field(request: Spec) -> None:
    fields = request["fields"]
    fields.insert(1, {"name": "RackId", "type": "string", "versions": "2+", "default": "x"})


def _new_struct(request: Spec) -> None:
    inner = [{"name": "A", "type": "int8", "versions": "4+"}]
    new = {"name": "Pair", "type": "[]Pair", "versions": "4+", "tag": 3, "taggedVersions": "4+"}
    request["fields"].append({**new, "nullableVersions": "4+", "fields": inner})


def _removed(request: Spec) -> None:
    field(request, "MemberId")["versions"] = "0-2"


def _absent(request: Spec) -> None:
    request["fields"].remove(field(request, "MemberId"))


def _changed(name: str, **marks: object) -> Callable[[Spec], None]:
    def change(request: Spec) -> None:
        field(request, name).update(marks)

    return change


def _moved(request: Spec) -> None:
    request["fields"].reverse()


DIFFERENCES: dict[str, tuple[Callable[[Spec], None], list[str]]] = {
    "new version": (_new_version, [": new versions 5 (declared: 0-4)"]),
    "new field": (_new_field, ['.RackId: new field, string, default "x", in versions 2-4']),
    "new struct": (_new_struct, [".Pair: new field, []struct, nullable, tag 3, in versions 4"]),
    "no longer": (_removed, [".MemberId: versions 0-4 declared here, 0-2 in the release"]),
    "removed": (_absent, [".MemberId: removed in versions 0-4"]),
    "type": (
        _changed("GenerationId", type="int64"),
        [".GenerationId: type int32 declared here, int64 in the release"],
    ),
    "nullable": (
        _changed("MemberId", nullableVersions="2+"),
        [".MemberId: nullable none declared here, 2-4 in the release"],
    ),
    "tag": (
        _changed("GroupInstanceId", versions="4+", taggedVersions="4+", tag=0),
        [
            ".GroupInstanceId: versions 3-4 declared here, 4 in the release",
            ".GroupInstanceId: tag None declared here, 0 in the release",
        ],
    ),
    "default": (
        _changed("GenerationId", default="-1"),
        [".GenerationId: default 0 declared here, -1 in the release"],
    ),
    "ignorable": (
        _changed("GenerationId", ignorable=True),
        [".GenerationId: ignorable False declared here, True in the release"],
    ),
    "order": (_moved, [": another order of fields in versions 0-4"]),
    "flexible": (
        lambda request: request.update(flexibleVersions="3+"),
        [": flexible 4 declared here, 3-4 in the release"],
    ),
}


@pytest.mark.parametrize("what", DIFFERENCES)
def test_each_difference_is_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    change, lines = DIFFERENCES[what]
    request, response = specs("Heartbeat")
    change(request)
    save(tmp_path, request, response)
    assert differences(tmp_path, capsys) == [f"{HEARTBEAT}{line}" for line in lines]


def test_new_apis_and_conflicting_keys_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request, _ = specs("Heartbeat")
    save(
        tmp_path,
        request | {"name": "PulseRequest"},
        request | {"name": "AbcRequest", "apiKey": 999},
    )
    assert differences(tmp_path, capsys) == [
        "AbcRequest: new, versions 0-4, key 999",
        "PulseRequest: new, versions 0-4, key 12",
        "PulseRequest: key 12 is declared as Heartbeat",
    ]


@pytest.mark.long
def test_written_declarations_equal_the_release(tmp_path: Path) -> None:
    """All changes together, in a copy of the checkout, compared there again."""
    copy, folder = tmp_path / "copy", tmp_path / "definitions"
    for room in ("dissector", "tools"):
        shutil.copytree(ROOT / room, copy / room, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    save(folder, *_of_a_release())
    first = run(copy, "--write", str(folder))
    assert first.returncode == 1, first.stderr
    assert "UnregisterControllerRecord" in first.stdout
    assert "removed: dissector/protocol/apis/groups/sync_group.py" in first.stdout
    second = run(copy, str(folder))
    assert (second.stdout, second.returncode) == ("no difference in 9 messages\n", 0), second.stderr

    apis = copy / "dissector/protocol/apis"
    produce = (apis / "data/produce.py").read_text()
    assert 'ProduceRequest = message(0, "0-14", flexible="9+")[' in produce
    assert 'Int32("leader_hint", "14+", default=-1, ignorable=True),' in produce
    # Attributes outside definitions are unchanged.
    assert 'String("name", "0-12", ignorable=True, key=True, entity="topicName"),' in produce
    before = (ROOT / "dissector/protocol/apis/data/produce.py").read_text()
    assert produce.startswith(before[: before.index("from dissector")])
    sasl = (apis / "security/sasl_authenticate.py").read_text()
    assert 'Bytes("auth_bytes", "3+", null="3+")' in sasl
    new = (apis / "pulse.py").read_text()
    assert new.startswith('"""\nPulse (key 14): ...\n\nSource: Kafka, PulseRequest.json and ')
    assert "PulseResponse = message(" in new
    nodes = (copy / "dissector/protocol/embedded/cluster_nodes.py").read_text()
    assert 'Uuid("incarnation_id", tag=0)' in nodes
    lint = [sys.executable, "-m", "ruff", "check", "--quiet", "dissector"]
    assert subprocess.run(lint, cwd=copy, check=False).returncode == 0


def _of_a_release() -> list[Spec]:
    produce, answered = specs("Produce")
    hint = {"name": "LeaderHint", "type": "int32", "versions": "14+", "default": "-1"}
    for each in (produce, answered):
        each["validVersions"] = "3-14"
    answered_partitions = field(answered, "Responses", "PartitionResponses")["fields"]
    answered_partitions.insert(2, hint | {"ignorable": True})
    field(produce, "TopicData", "PartitionData")["fields"].append(hint | {"ignorable": True})
    sasl, _ = specs("SaslAuthenticate")
    sasl["validVersions"] = "0-3"
    field(sasl, "AuthBytes").update(versions="3+", nullableVersions="3+")
    pulse, _ = specs("SyncGroup")
    beat, _ = specs("LeaveGroup")
    record = spec(
        "UnregisterControllerRecord", "metadata", cluster_nodes.UnregisterControllerRecord
    )
    marks = {"type": "uuid", "versions": "0+", "taggedVersions": "0+", "tag": 0}
    record["fields"].append({"name": "IncarnationId", **marks})
    value = spec(
        "StreamsGroupTopologyValue",
        "coordinator-value",
        streams_group_coordinator.StreamsGroupTopologyValue,
    )
    # Its fields have a name in our source, shared with others.
    field(value, "Subtopologies", "StateChangelogTopics", "Partitions")["type"] = "int64"
    key = {"apiKey": 99, "type": "coordinator-key", "name": "NewThingKey", "validVersions": "0"}
    name = {"name": "GroupId", "type": "string", "versions": "0"}
    return [
        produce,
        answered,
        sasl,
        beat,
        pulse | {"name": "PulseRequest"},
        pulse | {"name": "PulseResponse", "type": "response"},
        record,
        value,
        key | {"flexibleVersions": "none", "fields": [name]},
    ]


def run(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tools.release", *arguments]
    return subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)


def _no_jar(path: Path) -> Path:
    path.write_bytes(b"no jar")
    return path


def _empty_jar(path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", "")
    return path


def _bad_definition(path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as jar:
        jar.writestr("common/message/BadRequest.json", '{"type": "request", "name": "BadRequest"}')
    return path


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda path: path, "No such file"),
        (_no_jar, "neither a JAR nor a folder"),
        (_empty_jar, "no message definitions"),
        (_bad_definition, "BadRequest.json"),
    ],
    ids=["missing", "no jar", "without definitions", "bad definition"],
)
def test_bad_input_is_a_one_line_error(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    made: Callable[[Path], Path],
    words: str,
) -> None:
    path = made(tmp_path / "some.jar")
    assert main([str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("tools.release: ")
    assert str(path) in err
    assert words in err
    assert err.count("\n") == 1
