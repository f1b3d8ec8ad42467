"""Options of the tests, and their signals, which reach child processes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.conftest import mark_thinned, pytest_collection_modifyitems, pytest_configure
from tests.plugins.import_order import modules_in, own_share
from tools.shares import Share

NUMBERS = (signal.SIGINT, signal.SIGTERM)

SCRIPT = """
import subprocess, sys
from tests.conftest import pytest_configure
pytest_configure()
ask = "import signal, sys; print([int(signal.getsignal(n) is signal.SIG_IGN) for n in (2, 15)])"
print(subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True).stdout)
"""


@pytest.mark.long
@pytest.mark.parametrize("ignored", [(), (signal.SIGINT,), NUMBERS])
def test_children_do_not_inherit_ignored_signals(ignored: tuple[signal.Signals, ...]) -> None:
    """As where `make test` runs in the background of a shell."""

    def ignore() -> None:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)

    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=Path(__file__).parents[1],
        preexec_fn=ignore,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[0, 0]"


SOME = "tests/tools/test_shares.py"


def test_each_test_is_in_one_share(request: pytest.FixtureRequest) -> None:
    left_out: list[pytest.Item] = []
    hook = SimpleNamespace(pytest_deselected=lambda items: left_out.extend(items))
    here = list(request.session.items)
    kept: list[pytest.Item] = []
    for number in (1, 2, 3):
        config = SimpleNamespace(
            hook=hook, getoption={"share": f"{number}/3", "all_cases": False}.get
        )
        items = list(here)
        pytest_collection_modifyitems(cast(pytest.Config, config), items)
        kept += items
    assert Counter(kept) == Counter(here)
    assert len(left_out) == 2 * len(here)


class Case:
    """A case of a test that is `thinned` to one of so many."""

    def __init__(self, nodeid: str, parts: int | None) -> None:
        self.nodeid = nodeid
        self.marks = {} if parts is None else {"thinned": pytest.mark.thinned(parts).mark}

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return self.marks.get(name)

    def add_marker(self, name: str) -> None:
        self.marks[name] = pytest.mark.long.mark


def test_one_of_several_cases_is_fast() -> None:
    some = [Case(f"test_some[{number}]", 3) for number in range(7)]
    few = [Case(f"test_few[{number}]", 9) for number in range(2)]
    other = Case("test_other", None)
    partly_long = [Case(f"test_partly_long[{number}]", 3) for number in range(9)]
    for case in partly_long[1:]:
        case.add_marker("long")
    mark_thinned(cast("list[pytest.Item]", [*some, *few, other, *partly_long]))
    fast = [number for number, each in enumerate(some) if "long" not in each.marks]
    assert fast in ([0, 3, 6], [1, 4], [2, 5])
    assert sum("long" in each.marks for each in few) == 1
    assert "long" not in other.marks
    assert "long" not in partly_long[0].marks


@pytest.mark.long
def test_workers_run_the_same_share_and_the_times_are_printed() -> None:
    options = ["-p", "no:cacheprovider", "-v", "-n", "2", "--share", "2/3", "--folders"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, SOME],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
    )
    names = re.findall(rf"PASSED +({SOME}::.*\S)", done.stdout)
    assert names
    assert all(map(Share(2, 3).has, names))
    assert "share: 2/3" in done.stdout
    assert re.search(rf"^ +\d+\.\d s +{len(names)} tests  tests/tools$", done.stdout, re.MULTILINE)


def test_a_wrong_share_is_reported_in_one_line() -> None:
    config = SimpleNamespace(getoption={"share": "8/7"}.get)
    with pytest.raises(pytest.UsageError, match="'8/7' is no share of the tests"):
        pytest_configure(cast(pytest.Config, config))


LEAKING = """
import socket
from tests.plugins import open_sockets
open_sockets.GRACE_S = 0
left = []
def test_leaks():
    left.append(socket.create_server(("127.0.0.1", 0)))
def test_does_not():
    socket.create_server(("127.0.0.1", 0)).close()
"""


@pytest.mark.long
def test_a_test_that_leaves_a_socket_open_fails(tmp_path: Path) -> None:
    (tmp_path / "test_leaking.py").write_text(LEAKING)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tests.plugins.open_sockets",
        "-c",
        os.devnull,
    ]
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(
        [*command, "--rootdir", tmp_path, tmp_path], capture_output=True, text=True, env=env
    )
    assert "2 passed, 1 error" in done.stdout
    assert "the test left open: a socket ('127.0.0.1', " in done.stdout
    assert re.search(r"^ERROR .*::test_leaks\b", done.stdout, re.MULTILINE)


def test_workers_begin_with_different_modules() -> None:
    folder = Path(__file__).parent
    paths = modules_in([str(folder / "tools"), f"{__file__}::test_workers_begin_with"])
    assert {path.name for path in paths} >= {"test_shares.py", "test_conftest.py"}
    shares = [own_share(paths, number, 3) for number in range(3)]
    assert [path for share in shares for path in share] == paths
    assert len({len(share) for share in shares}) <= 2
