"""What is kept between tasks: loaded modules are frozen, garbage and memory are given back."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pyarrow as pa
import pytest

from pipeline.jobs.worker import FREEZE_THRESHOLD, SYSTEM, begin_task

pytestmark = pytest.mark.long


class ReferenceCycle:
    """Refers to itself."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def process() -> Iterator[None]:
    """Reset garbage collector and allocator to their state before the first task at the end."""
    gc.unfreeze()
    pool = pa.default_memory_pool()
    yield
    pa.set_memory_pool(pool)
    gc.unfreeze()


def after_a_task() -> None:
    """Collect garbage, as Spark does between tasks."""
    gc.collect()


def test_loaded_modules_are_frozen_for_the_garbage_collector(process: None) -> None:
    loaded = []
    for _ in range(2):
        loaded += [[number] for number in range(2 * FREEZE_THRESHOLD)]
        after_a_task()
        begin_task()
        assert len(gc.get_objects()) <= FREEZE_THRESHOLD
    assert gc.get_freeze_count() > len(loaded)


def test_garbage_of_later_tasks_is_collected(process: None) -> None:
    after_a_task()
    begin_task()
    garbage = weakref.ref(ReferenceCycle())
    after_a_task()
    assert garbage() is None


def test_objects_left_by_later_tasks_are_not_frozen(process: None) -> None:
    after_a_task()
    begin_task()
    kept = gc.get_freeze_count()
    cycle = ReferenceCycle()
    after_a_task()
    begin_task()
    assert gc.get_freeze_count() <= kept
    garbage = weakref.ref(cycle)
    del cycle
    after_a_task()
    assert garbage() is None


def test_memory_of_tasks_goes_back_to_the_system(process: None) -> None:
    begin_task()
    assert pa.default_memory_pool().backend_name == SYSTEM
    before = pa.total_allocated_bytes()
    rows = pa.array(range(100_000))
    assert pa.total_allocated_bytes() > before
    del rows
    assert pa.total_allocated_bytes() == before
