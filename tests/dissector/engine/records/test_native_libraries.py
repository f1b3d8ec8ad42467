"""Functions of libraries that a loop can call, and where there are none."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from threading import Thread

import pytest

from dissector.engine.records import native_libraries as module
from dissector.engine.records.native_libraries import (
    LZ4_FUNCTION,
    ZSTD_CONTEXT,
    ZSTD_FUNCTION,
    library_addresses,
    no_libraries,
)


@pytest.fixture
def nothing_known() -> Iterator[None]:
    """Have nothing that was found before count, nor what is found meanwhile."""

    def forget() -> None:
        module._lz4_function.cache_clear()
        module._zstd_library.cache_clear()
        module._thread_local.__dict__.clear()

    forget()
    yield
    forget()


def test_only_what_is_wanted_is_looked_for() -> None:
    assert library_addresses(lz4=False, zstd=False).tolist() == no_libraries().tolist() == [0, 0, 0]
    assert not library_addresses(lz4=True, zstd=False)[ZSTD_FUNCTION]
    assert not library_addresses(lz4=False, zstd=True)[LZ4_FUNCTION]


def test_each_thread_has_a_context_of_its_own() -> None:
    found = [library_addresses(lz4=True, zstd=True)]
    thread = Thread(target=lambda: found.append(library_addresses(lz4=True, zstd=True)))
    thread.start()
    thread.join()
    mine, other = found
    if not mine.all():
        pytest.skip("the libraries do not show their functions here")
    assert mine[ZSTD_CONTEXT] != other[ZSTD_CONTEXT]
    assert mine[:ZSTD_CONTEXT].tolist() == other[:ZSTD_CONTEXT].tolist()
    assert library_addresses(lz4=True, zstd=True).tolist() == mine.tolist()


@pytest.mark.usefixtures("nothing_known")
def test_where_a_library_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda path: object())
    assert not library_addresses(lz4=True, zstd=True).any()


@pytest.mark.usefixtures("nothing_known")
def test_where_there_is_no_such_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(path: str) -> None:
        raise OSError(path)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert not library_addresses(lz4=True, zstd=True).any()
    module._thread_local.__dict__.clear()
    module._zstd_library.cache_clear()
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    assert not library_addresses(lz4=True, zstd=True).any()
