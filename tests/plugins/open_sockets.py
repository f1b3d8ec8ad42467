"""
A guard: the test that leaves a socket open fails, not the one in which it becomes garbage.

A `ResourceWarning` comes with the next garbage collection, in any later test of the process.
"""

from __future__ import annotations

import os
import socket
import stat
import threading
import time
from collections.abc import Generator

import pytest

BEFORE = pytest.StashKey[dict[int, int]]()
HANDLES = "/dev/fd"

EXEMPT = ("broker", "spark", "keeps_sockets")
"""Marks of tests with libraries that keep connections for later."""

GRACE_S = 60.0
CLOSING = threading.Event()
"""Never set: between two looks other threads run."""


def open_sockets() -> dict[int, int]:
    """Return the sockets of this process: inode -> file handle."""
    found = {}
    for handle in map(int, os.listdir(HANDLES)):  # noqa: PTH208  (Path takes twice the time)
        try:
            status = os.fstat(handle)
        except OSError:  # the handle of the listing itself
            continue
        if stat.S_ISSOCK(status.st_mode):
            found[status.st_ino] = handle
    return found


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Note which sockets fixtures hold."""
    item.stash[BEFORE] = open_sockets()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """
    Fail if there are more sockets than before.

    Threads of servers close theirs after the answer, so what is left is looked at again.
    """
    ended = yield
    before = item.stash.get(BEFORE, None)
    if before is None or any(map(item.get_closest_marker, EXEMPT)):
        return ended
    deadline = time.monotonic() + GRACE_S
    while left := [handle for inode, handle in open_sockets().items() if inode not in before]:
        if time.monotonic() < deadline:
            CLOSING.wait(0.01)
            continue
        if texts := list(filter(None, map(described, left))):
            pytest.fail(f"the test left open: {', '.join(texts)}", pytrace=False)
    return ended


def described(handle: int) -> str:
    """Return both ends of a socket; empty if it is closed meanwhile."""
    try:
        held = socket.socket(fileno=os.dup(handle))
    except OSError:
        return ""
    with held:
        try:
            peer: object = held.getpeername()
        except OSError:
            peer = "no peer"
        return f"a socket {held.getsockname()} to {peer}"
