"""Files are numbered by arrival; late and missing ones are problems."""

from __future__ import annotations

import pytest

from pipeline.watch.arrivals import Arrivals


def _file(path: str, first_ns: int, packets: int = 10) -> dict[str, object]:
    return {"path": path, "first_ns": first_ns, "latest_ns": first_ns + 5, "packets": packets}


def test_packet_numbers_continue_in_the_order_of_first_packets() -> None:
    arrivals = Arrivals()
    taken = arrivals.add_files([_file("b", 20, 5), _file("a", 10, 7), _file("c", -1, 0)])
    assert [(each["file"], each["path"], each["first_packet"]) for each in taken] == [
        (0, "a", 0),
        (1, "b", 7),
        (2, "c", 12),
    ]
    assert arrivals.add_files([_file("d", -1)])[0]["first_packet"] == 12
    assert arrivals.add_files([_file("e", 30)])[0]["first_packet"] == 22


def test_a_late_file_is_reported() -> None:
    arrivals = Arrivals()
    arrivals.add_files([_file("b", 20)])
    assert arrivals.add_files([_file("c", 30), _file("a", 10)])[0] == {
        "file": 1,
        "path": "a",
        "packets": 10,
        "first_packet": 10,
        "latest_ns": 20,
        "clock_ns": 25,
        "problem": "late: files that begin after it were read before it",
    }
    assert arrivals.add_files([_file("d", 30)])[0]["problem"] is None


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (["x/a.pcap1", "x/a.pcap2"], None),
        (["x/a.pcap8", "x/a.pcap10"], "a file is missing before it: number 9"),
        (
            ["x/a_00001_20240501120000.pcap", "x/a_00005_20240501120500.pcap"],
            "3 files are missing before it: numbers 2 to 4",
        ),
        (["x/a-07.pcap.gz", "x/a-09.pcap.gz"], "a file is missing before it: number 8"),
        (["x/a-1.pcap", "x/b-7.pcap"], None),
        (["x/1714564800.pcap", "x/1714564860.pcap"], None),
        (["x/a.pcap", "x/b.pcap"], None),
    ],
)
def test_missing_files_are_reported_by_their_numbers(names: list[str], problem: str | None) -> None:
    taken = Arrivals().add_files([_file(name, at) for at, name in enumerate(names)])
    assert [each["problem"] for each in taken] == [None, problem]
