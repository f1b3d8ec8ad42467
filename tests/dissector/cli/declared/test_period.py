"""`--since` and `--until`: forms of times, and what each command takes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dissector.cli.period import in_period
from dissector.errors import UsageError
from tests.dissector.cli.conftest import Run

DEMO = "captures/demo.pcap"
BEGIN_NS = 1_795_254_391_908_450_000
"""The first packet of the demo: 2026-11-21 09:46:31.908450 UTC."""


@pytest.fixture
def berlin() -> Iterator[None]:
    """Let the local zone be one hour before UTC."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "Europe/Berlin"
    time.tzset()
    yield
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


def rows(run: Run, *words: str) -> list[dict[str, object]]:
    status, out, err = run(*words, "-T", "ndjson")
    assert status == 0, err
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.parametrize(
    "since",
    [
        "09:46:34Z",
        "9:46:34.000 UTC",
        "10:46:34+01:00",
        "10:46:34",
        "2026-11-21T09:46:34Z",
        "2026-11-21 10:46:34",
        "Nov 21, 2026 10:46:34",
        "1795254394",
        "2.09155",
        "2091.55ms",
        "+2.09155s",
    ],
)
@pytest.mark.usefixtures("berlin")
def test_all_forms_are_one_time(since: str, run: Run) -> None:
    every = rows(run, "pairs", DEMO)
    split_ns = 1_795_254_394_000_000_000
    after = [each for each in every if _end_ns(each) >= split_ns]
    before = [each for each in every if _begin_ns(each) < split_ns]
    assert 0 < len(after) < len(every)
    assert rows(run, "pairs", DEMO, "--since", since) == after
    assert rows(run, "pairs", DEMO, "--until", since) == before


def _begin_ns(row: dict[str, object]) -> int:
    return int(str(row["request_time_ns"] or row["response_time_ns"]))


def _end_ns(row: dict[str, object]) -> int:
    return int(str(row["response_time_ns"] or row["request_time_ns"]))


@pytest.mark.usefixtures("berlin")
def test_utc_is_the_zone_of_times_where_it_is_asked_for(run: Run) -> None:
    found = rows(run, "pairs", DEMO, "--since", "09:46:34", "--utc")
    assert found == rows(run, "pairs", DEMO, "--since", "09:46:34Z")
    assert found == rows(run, "pairs", DEMO, "--since", "09:46:34", "-t", "u")


def test_a_period_joins_a_filter(run: Run) -> None:
    found = rows(run, "pairs", DEMO, "-Y", "api == Fetch or error", "--since", "1", "--until", "3")
    every = rows(run, "pairs", DEMO, "-Y", "api == Fetch or error")
    inside = [
        each
        for each in every
        if _end_ns(each) >= BEGIN_NS + 10**9 and _begin_ns(each) < BEGIN_NS + 3 * 10**9
    ]
    assert found == inside
    assert 0 < len(inside) < len(every)


def test_a_time_of_day_is_on_the_day_of_the_capture_or_the_next() -> None:
    text = in_period(None, "09:00Z", "21:50Z", [DEMO])
    assert text == (
        'frame.time >= "2026-11-21 09:00:00.000000000Z"'
        ' and frame.time < "2026-11-21 21:50:00.000000000Z"'
    )
    # Before 21:46 of the day before all is more than 12 hours away.
    assert "2026-11-21 00:10" in str(in_period(None, "00:10Z", None, [DEMO]))


def test_a_capture_over_midnight(tmp_path: Path) -> None:
    data = bytearray(Path(DEMO).read_bytes())
    late = 1_795_305_000  # 23:50 UTC of the same day
    data[24:28] = late.to_bytes(4, "little")
    path = tmp_path / "late.pcap"
    path.write_bytes(data)
    assert "2026-11-22 00:10" in str(in_period(None, "00:10Z", None, [str(path)]))
    assert "2026-11-21 23:55" in str(in_period(None, "23:55Z", None, [str(path)]))


def test_a_time_of_day_of_a_live_capture_is_today() -> None:
    today = time.strftime("%Y-%m-%d", time.gmtime())
    noon = in_period(None, "12:00Z", None, ["-"], live=True)
    assert today in str(noon) or time.gmtime().tm_hour == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--since", "soon"), "--since takes a time, such as 10:42, "),
        (("--since", "25:00"), "--since takes a time"),
        (("--until", "2026-02-30"), "--until takes a time"),
        (("--since", "5", "--until", "5s"), "--until 5s is not after --since 5"),
        (("--since", "99999999999999999999"), "--since takes a time"),
    ],
)
def test_other_texts_are_refused(words: tuple[str, ...], message: str, run: Run) -> None:
    status, out, err = run("pairs", DEMO, *words)
    assert (status, out) == (2, "")
    assert message in err


def test_pipes_need_a_date() -> None:
    with pytest.raises(UsageError, match="add the date for -"):
        in_period(None, "10:42", None, ["-"])
    assert in_period(None, "90", None, ["-"]) == "frame.time_relative >= 90.000000000"


@pytest.mark.thinned(5)
@pytest.mark.parametrize(
    "words",
    [
        ("dissect",),
        ("records",),
        ("streams",),
        ("stats", "--by", "api"),
        ("groups",),
        ("upgrade", "--to", "2.0"),
        ("timeline",),
        ("findings",),
        ("conform",),
        ("advise",),
    ],
    ids=lambda words: words[0],
)
def test_every_command_takes_a_period(words: tuple[str, ...], run: Run) -> None:
    """Its output is another one, and of a period before the capture there is less or nothing."""
    command, *more = words
    of_all, of_part, of_none = (
        run(command, DEMO, *more, "-T", "ndjson", *period)[1]
        for period in ((), ("--since", "3"), ("--until", "2000-01-01Z"))
    )
    assert len(of_none) < len(of_all)
    assert len(of_part) <= len(of_all)
    assert of_part != of_all or command in ("conform", "advise")


def test_violations_are_of_chosen_exchanges_and_judged_by_all(run: Run) -> None:
    every = run("conform", DEMO)[1].splitlines()
    produced = run("conform", DEMO, "-Y", "api == Produce")[1].splitlines()
    fetched = run("conform", DEMO, "-Y", "api == Fetch")[1].splitlines()
    assert "8 warnings" in every[-1]
    assert produced[-1] == every[-1].replace("8 warnings", "6 warnings")
    assert fetched[-1] == every[-1].replace("8 warnings", "0 warnings")


def test_advice_names_chosen_exchanges(run: Run) -> None:
    every, audits = (
        [json.loads(line) for line in run("advise", DEMO, "-T", "ndjson", *words)[1].splitlines()]
        for words in ((), ("-Y", "api == OffsetCommit"))
    )
    kept = [each for each in every if each in audits]
    assert 0 < len(audits) < len(every)
    assert len(kept) >= len(audits) - 1  # the summary counts less
