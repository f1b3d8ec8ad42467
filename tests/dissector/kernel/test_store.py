"""The folder of compiled kernels: whole or not at all, and nobody else's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dissector.kernel import store


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KAFKASHARK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "kernels"


def test_what_is_kept_is_read(folder: Path) -> None:
    assert store.read("a") is None
    assert store.save("a", b"code")
    assert store.save("b", b"")
    assert store.save("a", b"other code")
    assert store.read("a") == b"other code"
    assert store.read("b") == b""
    assert sorted(path.name for path in folder.iterdir()) == ["a", "b"]


def test_the_folder_is_the_users_alone(folder: Path) -> None:
    store.save("a", b"code")
    assert folder.stat().st_mode & 0o777 == 0o700


@given(at=st.integers(0, 60), with_=st.binary(max_size=3), cut=st.integers(0, 3))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_what_is_damaged_counts_as_none(folder: Path, at: int, with_: bytes, cut: int) -> None:
    store.save("a", b"some code")
    whole = (folder / "a").read_bytes()
    damaged = whole[:at] + with_ + whole[at + cut :]
    (folder / "a").write_bytes(damaged)
    assert store.read("a") == (b"some code" if damaged == whole else None)


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_a_folder_that_others_write_to_is_left_alone(folder: Path, mode: int) -> None:
    store.save("a", b"code")
    folder.chmod(mode)
    assert store.read("a") is None
    assert not store.save("b", b"code")
    assert not (folder / "b").exists()


def test_a_file_that_others_write_to_is_left_alone(folder: Path) -> None:
    store.save("a", b"code")
    (folder / "a").chmod(0o666)
    assert store.read("a") is None


def test_what_belongs_to_others_is_left_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.save("a", b"code")
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    assert store.read("a") is None
    assert not store.save("a", b"code")


def test_where_there_can_be_no_folder_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("KAFKASHARK_CACHE", str(tmp_path / "file"))
    assert not store.save("a", b"code")
    assert store.read("a") is None


def test_others_wait_for_what_is_being_made(folder: Path) -> None:
    holding = (
        "from dissector.kernel import store\n"
        "with store.compile_lock('a'):\n"
        "    print('held', flush=True)\n"
        "    input()\n"
        "    store.save('a', b'theirs')\n"
    )
    found: SimpleQueue[bytes | None] = SimpleQueue()

    def wait() -> None:
        with store.compile_lock("a"):
            found.put(store.read("a"))

    with subprocess.Popen(
        [sys.executable, "-c", holding], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with store.compile_lock("b"):  # nobody makes that
            store.save("b", b"ours")
        waiting = Thread(target=wait)
        waiting.start()
        other.communicate("\n")
        waiting.join()
    assert found.get() == b"theirs"


@pytest.mark.parametrize("mode", [0o500, 0o777])
def test_where_there_can_be_no_lock_nobody_waits(folder: Path, mode: int) -> None:
    folder.mkdir(parents=True)
    folder.chmod(mode)
    with store.compile_lock("a"):
        pass
    assert mode == 0o500 or not list(folder.iterdir())


def test_a_full_disk_leaves_nothing_behind(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Path, target: Path) -> Path:
        raise OSError("no space")

    monkeypatch.setattr(Path, "replace", fail)
    assert not store.save("a", b"code")
    assert list(folder.iterdir()) == []


def test_where_the_folder_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAFKASHARK_CACHE")
    monkeypatch.setenv("HOME", "/me")
    for shared, expected in (("/big", "/big"), ("relative", "/me/.cache"), ("", "/me/.cache")):
        monkeypatch.setenv("XDG_CACHE_HOME", shared)
        assert store.cache_folder() == Path(expected) / "kafkashark" / "kernels"
