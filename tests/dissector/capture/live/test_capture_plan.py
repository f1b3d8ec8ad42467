"""The command lines of dumpcap and tcpdump."""

from __future__ import annotations

from pathlib import Path

import pytest

from dissector.capture.live.capture_plan import (
    CapturePlan,
    dumpcap_words,
    find_program,
    tcpdump_words,
)
from dissector.errors import UsageError


def test_dumpcap_applies_the_filter_to_each_interface() -> None:
    plan = CapturePlan(("lo", "eth0"), "tcp", packets=5, file_kb=7)
    assert dumpcap_words(plan) == [
        *("-q", "-w", "-", "-i", "lo", "-f", "tcp", "-i", "eth0", "-f", "tcp"),
        *("-c", "5", "-a", "filesize:7"),
    ]


def test_dumpcap_keeps_a_ring() -> None:
    plan = CapturePlan(("lo",), file=Path("a.pcapng"), ring_files=3, ring_kb=100)
    assert dumpcap_words(plan)[2:] == [
        *("a.pcapng", "-i", "lo", "-b", "files:3", "-b", "filesize:100"),
    ]


def test_tcpdump_accepts_filters_that_look_like_options() -> None:
    words = tcpdump_words(CapturePlan(("lo",), "-x", packets=2), None)
    assert words[-6:] == ["-i", "lo", "-c", "2", "--", "-x"]


@pytest.mark.skipif(not Path("/sys/class/net/lo").exists(), reason="needs Linux")
def test_tcpdump_captures_several_interfaces_by_their_numbers() -> None:
    number = Path("/sys/class/net/lo/ifindex").read_text().strip()
    words = tcpdump_words(CapturePlan(("lo", "lo"), "port 9092"), None)
    assert words[-1] == f"(ifindex {number} or ifindex {number}) and (port 9092)"
    with pytest.raises(UsageError, match="-i nowhere0: no such interface"):
        tcpdump_words(CapturePlan(("lo", "nowhere0")), None)


def test_the_error_without_a_program_names_the_packages(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"install dumpcap .*ssh HOST tcpdump"):
        find_program(str(tmp_path))


def test_dumpcap_is_preferred_to_tcpdump(tmp_path: Path) -> None:
    for name in ("tcpdump", "dumpcap"):
        (tmp_path / name).touch(mode=0o755)
        assert find_program(str(tmp_path)) == (name, str(tmp_path / name))
    (tmp_path / "dumpcap").chmod(0o644)  # as for users outside its group
    assert find_program(str(tmp_path))[0] == "tcpdump"
