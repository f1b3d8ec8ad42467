"""What is loaded is looked at once; what tasks make goes away as ever."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from pipeline.jobs.worker import FREEZE_THRESHOLD, freeze_garbage


class Knot:
    """Holds itself."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def process() -> Iterator[None]:
    """Begin as a process in which no task has run, and end likewise."""
    gc.unfreeze()
    yield
    gc.unfreeze()


def after_a_task() -> None:
    """Do what Spark does between two tasks."""
    gc.collect()


def test_loaded_modules_are_frozen_for_the_garbage_collector(process: None) -> None:
    loaded = []
    for _ in range(2):
        loaded += [[number] for number in range(2 * FREEZE_THRESHOLD)]
        after_a_task()
        freeze_garbage()
        assert len(gc.get_objects()) <= FREEZE_THRESHOLD
    assert gc.get_freeze_count() > len(loaded)


def test_garbage_of_later_tasks_goes_away(process: None) -> None:
    after_a_task()
    freeze_garbage()
    garbage = weakref.ref(Knot())
    after_a_task()
    assert garbage() is None


def test_the_little_that_a_task_leaves_stays_in_sight(process: None) -> None:
    after_a_task()
    freeze_garbage()
    kept = gc.get_freeze_count()
    knot = Knot()
    after_a_task()
    freeze_garbage()
    assert gc.get_freeze_count() <= kept
    garbage = weakref.ref(knot)
    del knot
    after_a_task()
    assert garbage() is None
