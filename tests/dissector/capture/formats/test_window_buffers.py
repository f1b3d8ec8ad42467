from __future__ import annotations

import gc

import numpy as np

from dissector.capture.formats.window_buffers import BufferPool

SIZE = 1 << 17


def place(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def test_unreferenced_memory_is_reused() -> None:
    buffers = BufferPool()
    first = buffers.acquire("u1", SIZE)
    where = place(first)
    assert place(buffers.acquire("u1", SIZE)) != where
    del first
    assert where in {place(each) for each in [buffers.acquire("i4", SIZE // 4) for _ in range(2)]}


def test_views_and_memoryviews_keep_memory_in_use() -> None:
    buffers = BufferPool()
    for hold in (
        lambda array: array[1, 5:][2:],
        lambda array: array.data,
        lambda array: array[0].view(np.uint8),
        lambda array: np.frombuffer(array[1].data, np.uint8),
    ):
        array = buffers.acquire("i8", 2, SIZE)
        array[:] = 7
        held = hold(array)
        del array
        gc.collect()
        others = [buffers.acquire("i8", 2, SIZE) for _ in range(5)]
        for other in others:
            other[:] = 9
        assert 9 not in np.asarray(held)
        del held, others


def test_shapes_and_types() -> None:
    buffers = BufferPool()
    for dtype, shape in (("u1", (0,)), ("i8", (4, 3)), ("i4", (5, SIZE + 1)), ("i8", (2, SIZE, 2))):
        array = buffers.acquire(dtype, *shape)
        assert array.shape == shape
        assert array.dtype == np.dtype(dtype)
        assert array.flags.c_contiguous
        assert array.flags.writeable


def test_kept_memory_is_bounded() -> None:
    buffers = BufferPool()
    taken = [buffers.acquire("u1", SIZE) for _ in range(20)]
    taken.clear()
    assert buffers.free_count == 3
