"""Values of numbers, as a dict has them; those of forgotten numbers take no memory."""

from __future__ import annotations

import random

import numpy as np

from dissector.kernel.numbered_values import NumberedValues

NOTHING = -1


def test_values_are_those_of_a_dict() -> None:
    order = random.Random(5)
    values, expected = NumberedValues(np.int32, NOTHING), dict[int, int]()
    for _ in range(100):
        begin = len(values)
        values.number_up_to(begin + 200)
        new = np.arange(begin, begin + 200)
        chosen = np.array(order.sample(range(len(values)), 40))
        for numbers in (new, chosen):
            given = np.array([order.randrange(-1, 50) for _ in numbers])
            values[numbers] = given
            expected.update(zip(numbers.tolist(), given.tolist(), strict=True))
        known = [number for number, value in expected.items() if value != NOTHING]
        gone = np.array(order.sample(known, len(known) // 2))
        values.forget(gone)
        for number in gone.tolist():
            expected[number] = NOTHING
        asked = np.array(order.sample(range(len(values)), 100))
        assert values[asked].tolist() == [expected.get(each, NOTHING) for each in asked.tolist()]
        assert values[int(asked[0])] == expected.get(int(asked[0]), NOTHING)
    numbers, kept = values.items()
    assert dict(zip(numbers.tolist(), kept.tolist(), strict=True)) == {
        number: value for number, value in sorted(expected.items()) if value != NOTHING
    }


def test_forgotten_numbers_take_no_memory() -> None:
    values, most = NumberedValues(np.int32, NOTHING), 0
    values.number_up_to(1)
    values[np.array([0])] = 7
    for _ in range(100):
        begin = len(values)
        values.number_up_to(begin + 10_000)
        new = np.arange(begin, begin + 10_000)
        values[new] = 1
        values.forget(new)
        most = max(most, values.nbytes)
    assert most < 10 * 10_000
    assert values[np.array([0, 5, 999_999])].tolist() == [7, NOTHING, NOTHING]


def test_renumbering_keeps_values_by_index() -> None:
    values = NumberedValues(np.int8, 0)
    values.number_up_to(10)
    values[np.array([2, 7])] = np.array([4, 5])
    values.renumber(np.array([7, 1, 2, 12]))
    assert values[np.arange(4)].tolist() == [5, 0, 4, 0]
