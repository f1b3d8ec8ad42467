"""tshark's `-q -z` gives the table of our command."""

from __future__ import annotations

import shlex

import pytest

from tests.corpus import FOLDER as CAPTURES
from tests.dissector.cli.conftest import Run

DEMO = str(CAPTURES / "demo.pcap")

SAME = {
    "-r {} -q -z io,stat,1": "stats {} --by '1 s'",
    "dissect {} -q -z conv,tcp,kafka.api_key==0": "streams {} -Y kafka.api_key==0",
    "dissect -r {} -z kafka,srt -Y error": "stats {} -Y error",
    "-q -zexpert -r {}": "findings {}",
}


@pytest.mark.parametrize("theirs", [each for each in SAME if SAME[each]])
def test_statistics_are_ours(theirs: str, run: Run) -> None:
    def words(text: str) -> list[str]:
        return [word.format(DEMO) for word in shlex.split(text)]

    assert run(*words(theirs)) == run(*words(SAME[theirs]))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-z", "smb,srt"), "-z takes io,stat | conv,tcp"),
        (("-z", "io,stat,x"), "-z io,stat takes an interval in seconds, not 'x'"),
        (("-z", "conv,tcp", "-z", "kafka,srt"), "one -z at a time"),
        (("-z",), "-z takes io,stat"),
    ],
)
def test_other_statistics_are_refused(words: tuple[str, ...], said: str, run: Run) -> None:
    status, out, err = run("-r", DEMO, *words)
    assert (status, out) == (2, "")
    assert err.startswith(f"kafkashark: {said}")
