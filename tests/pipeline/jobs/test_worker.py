"""Loaded modules are frozen for the garbage collector; garbage of tasks is collected."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from pipeline.jobs.worker import FREEZE_THRESHOLD, freeze_garbage

pytestmark = pytest.mark.long


class ReferenceCycle:
    """Refers to itself."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def process() -> Iterator[None]:
    """Reset the garbage collector to its state before the first task, and again at the end."""
    gc.unfreeze()
    yield
    gc.unfreeze()


def after_a_task() -> None:
    """Collect garbage, as Spark does between tasks."""
    gc.collect()


def test_loaded_modules_are_frozen_for_the_garbage_collector(process: None) -> None:
    loaded = []
    for _ in range(2):
        loaded += [[number] for number in range(2 * FREEZE_THRESHOLD)]
        after_a_task()
        freeze_garbage()
        assert len(gc.get_objects()) <= FREEZE_THRESHOLD
    assert gc.get_freeze_count() > len(loaded)


def test_garbage_of_later_tasks_is_collected(process: None) -> None:
    after_a_task()
    freeze_garbage()
    garbage = weakref.ref(ReferenceCycle())
    after_a_task()
    assert garbage() is None


def test_objects_left_by_later_tasks_are_not_frozen(process: None) -> None:
    after_a_task()
    freeze_garbage()
    kept = gc.get_freeze_count()
    cycle = ReferenceCycle()
    after_a_task()
    freeze_garbage()
    assert gc.get_freeze_count() <= kept
    garbage = weakref.ref(cycle)
    del cycle
    after_a_task()
    assert garbage() is None
