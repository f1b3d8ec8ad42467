"""
Shares out the work of a fresh checkout: each worker of xdist begins with other test modules.

Every worker imports all modules. Whoever is the first to do so rewrites the assertions of a module
and compiles it, in more time than all else of the collection takes; the others find the result.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Import the modules that this worker begins with; the collection imports the others."""
    worker: dict[str, str | int] | None = getattr(session.config, "workerinput", None)
    if worker is None:
        return
    number = int(str(worker["workerid"]).removeprefix("gw"))
    for path in own_share(modules_in(session.config.args), number, int(worker["workercount"])):
        # The collection comes to it again, and says what is wrong or missing.
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


def modules_in(words: Sequence[str]) -> list[Path]:
    """Return the test modules that words of the command line name, in the order of collection."""
    named = [Path(word.partition("::")[0]).resolve() for word in words]
    below = chain.from_iterable(
        path.rglob("test_*.py") if path.is_dir() else [path] for path in named
    )
    return sorted({path for path in below if path.is_relative_to(ROOT)})


def own_share(paths: Sequence[Path], number: int, parts: int) -> Sequence[Path]:
    """Return one of several shares, with all that are between two of its paths."""
    return paths[len(paths) * number // parts : len(paths) * (number + 1) // parts]
