"""Communication with Kafka's own classes: one JVM per release, one line per request."""

from __future__ import annotations

import base64
import contextlib
import json
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from dissector.protocol.schema import Versions
from tests.broker import artifacts
from tests.waiting import PATIENCE_S

SOURCE = Path(__file__).with_name("Oracle.java")
_CONVERTER = "JsonConverter.class"
A_PRODUCER = {
    "magic": 2,
    "codec": "none",
    "timestamp_type": "CreateTime",
    "base_offset": 0,
    "append_time": -1,
    "producer_id": -1,
    "producer_epoch": -1,
    "base_sequence": -1,
    "transactional": False,
    "control": False,
    "partition_leader_epoch": -1,
}
"""A batch as a producer has it, that is not idempotent and does not compress."""


class OracleError(Exception):
    """The JVM ended unexpectedly; the message is its output."""


@dataclass(frozen=True)
class Answer:
    """
    Kafka's result for one message.

    Attributes:
        value: Output of its JSON converter.
        reencoded: The bytes re-encoded by Kafka.
        left: Bytes left over by Kafka.
    """

    value: Any
    reencoded: bytes
    left: int


class Oracle:
    """
    A running JVM with one release of Kafka.

    Attributes:
        line: The release line: `4.x`.
        jars: Its jars.
    """

    def __init__(
        self, line: str, jars: artifacts.Jars, process: subprocess.Popen[bytes], said: BinaryIO
    ) -> None:
        self.line = line
        self.jars = jars
        self._process = process
        self._said = said
        self._versions: dict[tuple[tuple[str, Any], ...], Versions] = {}

    def ask(self, **job: Any) -> dict[str, Any]:
        """
        Send one request, with bytes as base64; return the response.

        Raises:
            OracleError: Kafka refuses, or the JVM has ended.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(job, default=_base64).encode() + b"\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            self._said.seek(0)
            raise OracleError(self._said.read().decode(errors="replace")[-2000:])
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise OracleError(f"Kafka {self.jars.version}: {answer['error']}")
        return answer

    def versions(self, **which: Any) -> Versions:
        """Return the versions of a message in the release; see `message`."""
        question = tuple(which.items())
        if question not in self._versions:
            answer = {"low": 1, "high": 0} | self.ask(task="versions", **which)
            self._versions[question] = Versions(answer["low"], answer["high"])
        return self._versions[question]

    def message(self, version: int, data: bytes, **which: Any) -> Answer:
        """
        Let Kafka decode and encode a body.

        Args:
            version: Of the message.
            data: The body.
            which: `name` of the class, or `api_key` and `kind`.
        """
        answer = self.ask(task="message", version=version, bytes=data, **which)
        if "unknown" in answer:
            raise OracleError(f"Kafka {self.jars.version} does not know {answer['unknown']}")
        return Answer(answer["value"], base64.b64decode(answer["bytes"]), answer["left"])

    def classes(self) -> set[str]:
        """List the classes of this release generated from definitions."""
        found: set[str] = set()
        for jar in self.jars.folder.glob("kafka-*.jar"):
            with zipfile.ZipFile(jar) as content:
                found |= {
                    name.rpartition("/")[2].removesuffix(_CONVERTER)
                    for name in content.namelist()
                    if name.endswith(_CONVERTER) and "$" not in name
                }
        return found

    def read_records(self, data: bytes) -> list[dict[str, Any]]:
        """Let Kafka decode a records field: its batches, by the names of their getters."""
        batches: list[dict[str, Any]] = self.ask(task="read", bytes=data)["batches"]
        return batches

    def write_records(self, **batch: Any) -> bytes:
        """Let Kafka encode a records field, with the defaults of a producer."""
        return base64.b64decode(self.ask(task="write", **{**A_PRODUCER, **batch})["bytes"])


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


@contextlib.contextmanager
def running(line: str) -> Iterator[Oracle]:
    """
    Start a release's JVM; it ends with the block.

    Raises:
        MissingError: No Java, no compiler in it, no Maven or no artifacts.
    """
    jars = artifacts.jars(line)
    modules = subprocess.run(
        ["java", "--list-modules"], capture_output=True, text=True, check=False
    )
    if "jdk.compiler" not in modules.stdout:
        raise artifacts.MissingError("the java here is no JDK, which runs from source")
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            jars.java(str(SOURCE)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said
        )
        try:
            yield Oracle(line, jars, process, said)
        finally:
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()  # the end of its input ends it
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            assert process.stdout is not None
            process.stdout.close()
