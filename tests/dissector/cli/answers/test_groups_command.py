"""`kafkashark groups` on captures of real clients."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dissector.cli.conftest import Run

CAPTURES = Path(__file__).parents[4] / "captures"


def test_demo(good: Run) -> None:
    rows = good("groups", CAPTURES / "demo.pcap", "-T", "ndjson").rows
    (group,) = (row for row in rows if row["section"] == "groups")
    assert (group["group"], group["state"], group["generation"]) == ("billing", "Empty", 2)
    assert (group["assignor"], group["lag"]) == ("range", 56)
    members = [row for row in rows if row["section"] == "members"]
    assert [(row["client_id"], row["assignment"], row["left"]) for row in members] == [
        ("billing-1", ["demo.orders(0,1)"], True),
        ("billing-2", ["demo.orders(2)"], True),
    ]
    lags = {row["partition"]: row["lag"] for row in rows if row["section"] == "partitions"}
    assert lags == {0: 50, 1: 4, 2: 2}


def test_lag_over_time_ends_with_that_of_the_group(good: Run, run: Run) -> None:
    path = CAPTURES / "demo.pcap"
    words = ("groups", path, "--interval", "0.5", "-T", "ndjson")
    rows = good(*words, "--group", "billing").rows
    assert {row["section"] for row in rows} == {"lags", "partition_lags"}
    last = [row for row in rows if row["section"] == "lags"][-1]
    assert (last["lag"], last["members"]) == (56, 0)
    assert last["note"].startswith("no member")
    assert run(*words, "--group", "other").status == 2
    assert run("groups", path, "--interval", "0").status == 2


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("kafka4-librdkafka-group-848", {"consumer"}),
        ("kafka4-java-share-group", {"share"}),
        ("kafka4-streams-group", {"classic", "streams"}),
        ("kafka4-connect", {"classic"}),
    ],
)
def test_types_of_groups(good: Run, name: str, kinds: set[str]) -> None:
    rows = good("groups", CAPTURES / f"{name}.pcap", "-T", "ndjson").rows
    assert {row["type"] for row in rows if row["section"] == "groups"} == kinds
    assert any(row["assignment"] for row in rows if row["section"] == "members")


def test_one_group(good: Run, run: Run) -> None:
    path = CAPTURES / "kafka4-connect.pcap"
    out = good("groups", path, "--group", "kafka4-connect.workers").out
    assert "kafka4-connect.Sink(0)" in out
    assert "connect-kafka4-connect.Sink " not in out
    known = "connect-kafka4-connect.Sink, kafka4-connect.workers"
    done = run("groups", path, "--group", "other")
    assert done == (2, "", f"kafkashark: no group is named 'other'; there are: {known}\n")


def test_filter(good: Run) -> None:
    path = CAPTURES / "kafka4-connect.pcap"
    rows = good("groups", path, "-T", "ndjson", "-Y", "client_id == connect-20643").rows
    assert {row["group"] for row in rows} == {"kafka4-connect.workers"}


def test_output_is_the_same_from_pipe_and_file(good: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    path = CAPTURES / "demo.pcap"
    expected = good("groups", path).out
    with path.open("rb") as file:
        stdin = type("Stdin", (), {"buffer": file, "fileno": file.fileno})
        monkeypatch.setattr("sys.stdin", stdin)
        assert good("groups", "-").out == expected


def test_without_kafka(run: Run, tmp_path: Path) -> None:
    done = run("groups", CAPTURES / "manifest.json")
    assert done.status == 2
    assert "Traceback" not in done.err


def test_columns_order_and_limit(good: Run, run: Run) -> None:
    words = ["groups", CAPTURES / "demo.pcap", "-T", "ndjson", "--sort", "-lag", "-c", "2"]
    rows = good(*words, "--columns", "lag,assignment").rows
    assert rows[0] == {"section": "groups", "group": "billing", "lag": 56}
    partitions = [row for row in rows if row["section"] == "partitions"]
    assert [(row["partition"], row["lag"]) for row in partitions] == [(0, 50), (1, 4)]
    assert {*partitions[0]} == {"section", "group", "topic", "partition", "member_id", "lag"}
    assert run(*words, "-e", "lagg").err.startswith("kafkashark: --columns: no column 'lagg';")
