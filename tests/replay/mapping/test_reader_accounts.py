"""What readers were given, in bounded memory."""

from __future__ import annotations

from replay.mapping import reader_accounts
from replay.mapping.reader_accounts import Given, Readers
from replay.model.offset_ranges import Range, Ranges


def note(found: Readers, step: int, captured: list[Range], live: list[Range]) -> None:
    found.note(1, step, Given("orders", 0, Ranges(captured), Ranges(live)))


def owed(found: Readers) -> list[Range]:
    return [each for account in found.owing() for each in account.owed]


def test_what_one_answer_lacks_another_brings() -> None:
    found = Readers()
    note(found, 4, [Range(0, 10)], [Range(0, 3)])
    note(found, 5, [Range(10, 20)], [])
    assert owed(found) == [Range(3, 20)]
    (account,) = found.owing()
    assert [account.step_of(each) for each in (3, 10, 19)] == [4, 5, 5]
    note(found, 6, [], [Range(3, 15)])
    assert owed(found) == [Range(15, 20)]
    note(found, 7, [Range(0, 10)], [Range(15, 20)])
    assert owed(found) == []


def test_readers_and_logs_are_told_apart() -> None:
    found = Readers()
    found.note(1, 0, Given("orders", 0, Ranges([Range(0, 1)]), Ranges()))
    found.note(2, 1, Given("orders", 0, Ranges(), Ranges([Range(0, 1)])))
    found.note(1, 2, Given("orders", 1, Ranges(), Ranges([Range(0, 1)])))
    assert [account.log for account in found.owing()] == [("orders", 0)]


def test_no_more_ranges_are_kept_than_so_many() -> None:
    found = Readers()
    for at in range(3 * reader_accounts.MOST_RANGES):
        note(found, at, [Range(4 * at, 4 * at + 2)], [Range(4 * at, 4 * at + 1)])
    (account,) = found.owing()
    assert len(account.owed) <= reader_accounts.MOST_RANGES
    assert len(account.given) <= reader_accounts.MOST_RANGES
