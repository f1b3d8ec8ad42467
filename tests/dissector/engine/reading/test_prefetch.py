from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dissector.engine.reading.prefetch import map_in_threads, prefetch
from dissector.errors import CaptureError
from tests.waiting import PATIENCE_S, wait_until


def test_items_come_in_their_order():
    assert list(prefetch(range(1000))) == list(range(1000))
    assert list(prefetch(range(1000), 7)) == list(range(1000))
    assert list(prefetch([])) == []
    assert list(prefetch([None, (), None])) == [None, (), None]


def test_the_next_item_is_produced_while_one_is_consumed():
    made = threading.Event()

    def items() -> Iterator[int]:
        yield 1
        made.set()
        yield 2

    for item in prefetch(items()):
        # Never ends if the second item waits for the consumption of the first.
        assert item == 2 or made.wait(PATIENCE_S)


def test_number_of_prefetched_items_is_bounded():
    made: list[int] = []
    waited = threading.Event()

    def items() -> Iterator[int]:
        for number in range(100):
            made.append(number)
            if number == 2:
                waited.set()
            yield number

    stage = prefetch(items(), 2)
    assert next(stage) == 0
    assert waited.wait(PATIENCE_S)
    # One was taken, which leaves room for two more.
    assert made == [0, 1, 2]
    assert list(stage) == list(range(1, 100))


def test_errors_are_raised_in_order():
    def items() -> Iterator[int]:
        yield 1
        yield 2
        raise CaptureError("a.pcap", "is gone")

    stage = prefetch(items(), 5)
    assert [next(stage), next(stage)] == [1, 2]
    with pytest.raises(CaptureError, match=r"a\.pcap: is gone"):
        next(stage)


def test_an_early_stop_ends_the_thread():
    ended = threading.Event()

    def items() -> Iterator[int]:
        try:
            yield from range(1_000_000)
        finally:
            ended.set()

    stage = prefetch(items())
    assert next(stage) == 0
    stage.close()  # type: ignore[attr-defined]
    assert ended.wait(PATIENCE_S)


def test_stages_can_be_chained():
    first = prefetch(range(50))
    second = prefetch((item * 2 for item in first), 2)
    assert list(second) == [item * 2 for item in range(50)]


def test_results_keep_the_order_of_their_items():
    second = threading.Event()

    def work(item: int) -> int:
        if item == 0:
            # Never ends with a single worker.
            assert second.wait(PATIENCE_S)
        if item == 1:
            second.set()
        return item * 2

    assert list(map_in_threads(range(50), work, 2, 2)) == [item * 2 for item in range(50)]


def test_one_item_is_drawn_at_a_time():
    def items() -> Iterator[int]:
        yield from range(500)  # a generator raises ValueError if entered by two threads

    assert list(map_in_threads(items(), abs, 8, 8)) == list(range(500))
    assert list(map_in_threads([], abs, 8, 8)) == []


def test_errors_of_work_are_raised_in_order():
    def work(item: int) -> float:
        return 6 / item

    results = map_in_threads([1, 2, 0, 3], work, 3, 3)
    assert [next(results), next(results)] == [6, 3]
    with pytest.raises(ZeroDivisionError):
        next(results)


def is_asleep(thread: int) -> bool:
    """Check repeatedly, as a thread waiting for the GIL gets it between two checks."""
    status = Path(f"/proc/self/task/{thread}/stat")
    return all(status.read_text().rpartition(")")[2].split()[0] == "S" for _ in range(50))


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at threads by /proc")
def test_a_signal_is_handled_while_a_result_is_awaited() -> None:
    """It is sent to another thread, so it does not interrupt the wait of the main thread."""
    main, handled = threading.get_native_id(), threading.Event()

    def items() -> Iterator[bool]:
        wait_until(lambda: is_asleep(main))
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
        yield handled.wait(PATIENCE_S)

    previous = signal.signal(signal.SIGUSR1, lambda *_: handled.set())
    try:
        assert list(prefetch(items())) == [True]
    finally:
        signal.signal(signal.SIGUSR1, previous)
