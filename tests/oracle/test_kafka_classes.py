"""The oracle itself: it finds differences, and reports errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dissector.protocol.apis.data.api_versions import ApiVersionsRequest
from dissector.protocol.schema import Versions
from tests.broker import artifacts
from tests.oracle.kafka_classes import Oracle, OracleError, running
from tests.oracle.release_comparison import Subject

pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("broker")]

API_VERSIONS: dict[str, Any] = {"api_key": 18, "kind": "request"}
BODY = {"client_software_name": "a", "client_software_version": "b"}
DATA = bytes.fromhex("0261 0262 00")


def test_values_decoded_and_encoded_by_kafka(oracles: list[Oracle]) -> None:
    for oracle in oracles:
        answer = oracle.message(3, DATA, **API_VERSIONS)
        assert answer.value == {"clientSoftwareName": "a", "clientSoftwareVersion": "b"}
        assert answer.reencoded == DATA
        assert answer.left == 0
        assert oracle.message(3, DATA + b"\0\0", **API_VERSIONS).left == 2


@pytest.mark.parametrize(
    ("body", "data"),
    [
        (BODY | {"client_software_name": "x"}, DATA),
        (BODY, DATA + b"\0"),
        # Kafka never encodes a tagged field at its default, and encodes lengths in shortest form.
        (BODY, bytes.fromhex("820061 0262 00")),
    ],
    ids=["value", "left over", "bytes"],
)
def test_a_difference_is_found(oracles: list[Oracle], body: Any, data: bytes) -> None:
    subject = Subject(ApiVersionsRequest, API_VERSIONS)
    for oracle in oracles:
        subject.assert_agrees(oracle, 3, BODY, DATA)
        with pytest.raises(AssertionError):
            subject.assert_agrees(oracle, 3, body, data)


def test_apis_and_versions_unknown_to_a_release(oracles: list[Oracle]) -> None:
    newest, old = oracles
    assert newest.versions(api_key=4, kind="request") == Versions(1, 0)
    assert old.versions(api_key=4, kind="request") == Versions(0, 7)
    assert old.versions(name="NoSuchClass") == Versions(1, 0)
    with pytest.raises(OracleError, match="version 99"):
        newest.message(99, DATA, **API_VERSIONS)


def test_bytes_refused_by_kafka(oracles: list[Oracle]) -> None:
    for oracle in oracles:
        with pytest.raises(OracleError, match=r"BufferUnderflow|Error reading"):
            oracle.message(3, b"\x09", **API_VERSIONS)


def test_an_ended_jvm_is_an_error_with_its_output(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, oracles: list[Oracle]
) -> None:
    broken = tmp_path / "Oracle.java"
    broken.write_text("class Oracle { no java }")
    monkeypatch.setattr("tests.oracle.kafka_classes.SOURCE", broken)
    with running("4.x") as oracle, pytest.raises(OracleError, match="compilation failed"):
        oracle.versions(name="TopicRecord")


def test_java_without_a_compiler_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, oracles: list[Oracle]
) -> None:
    (tmp_path / "java").write_text("#!/bin/sh\necho java.base@17\n")
    (tmp_path / "java").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(artifacts.MissingError, match="no JDK"), running("4.x"):
        pass
