"""Files that a user names are read whole, but not without an end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cluster.client.auth import Security
from conform.report.baseline import read_baseline
from dissector.cli.redaction_options import read_key
from dissector.errors import UsageError
from dissector.small_files import MAX_FILE_BYTES, read_small_file, read_small_text
from replay.compare.ignore_rules import Noise
from replay.options.difference_baseline import DifferenceBaseline
from replay.report.merged_report import merge_reports
from serve.server.listener_security import login_password

ZERO = Path("/dev/zero")


def test_a_file_is_read_up_to_a_limit(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"12345")
    assert read_small_file(file, max_bytes=5) == b"12345"
    with pytest.raises(UsageError, match=r"a: the key cannot be read \(more than 4 bytes\)"):
        read_small_file(file, "the key ", max_bytes=4)
    with pytest.raises(UsageError, match=r"none: cannot be read \(No such file"):
        read_small_file(tmp_path / "none")
    file.write_bytes(b"12\xff")
    with pytest.raises(UsageError, match=r"is not text \(byte 2\)"):
        read_small_text(file)
    file.write_text("\ufeffab")
    assert read_small_text(file) == "ab"


@pytest.mark.parametrize(
    "read",
    [
        read_baseline,
        Noise.read,
        DifferenceBaseline.read,
        login_password,
        lambda file: Security.read(mechanism="PLAIN", username="a", secret_file=file),
        lambda file: merge_reports([file]),
        lambda file: read_key(str(file)),
    ],
)
def test_an_endless_file_is_an_error(read: Callable[[Path], object]) -> None:
    with pytest.raises(UsageError, match="/dev/zero: "):
        read(ZERO)


def test_the_limit_is_far_above_what_people_write() -> None:
    assert MAX_FILE_BYTES >= 1 << 24
