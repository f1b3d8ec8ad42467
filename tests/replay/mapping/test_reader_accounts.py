"""What readers were given, in bounded memory."""

from __future__ import annotations

from replay.mapping import reader_accounts
from replay.mapping.reader_accounts import ReaderAccounts, ReturnedRecords
from replay.model.offset_ranges import Range, Ranges


def note(found: ReaderAccounts, step: int, captured: list[Range], live: list[Range]) -> None:
    found.record(1, step, ReturnedRecords("orders", 0, Ranges(captured), Ranges(live)))


def owed(found: ReaderAccounts) -> list[Range]:
    return [each for account in found.with_missing() for each in account.missing]


def test_records_missing_from_one_response_may_come_with_another() -> None:
    found = ReaderAccounts()
    note(found, 4, [Range(0, 10)], [Range(0, 3)])
    note(found, 5, [Range(10, 20)], [])
    assert owed(found) == [Range(3, 20)]
    (account,) = found.with_missing()
    assert [account.step_of(each) for each in (3, 10, 19)] == [4, 5, 5]
    note(found, 6, [], [Range(3, 15)])
    assert owed(found) == [Range(15, 20)]
    note(found, 7, [Range(0, 10)], [Range(15, 20)])
    assert owed(found) == []


def test_readers_and_logs_are_distinguished() -> None:
    found = ReaderAccounts()
    found.record(1, 0, ReturnedRecords("orders", 0, Ranges([Range(0, 1)]), Ranges()))
    found.record(2, 1, ReturnedRecords("orders", 0, Ranges(), Ranges([Range(0, 1)])))
    found.record(1, 2, ReturnedRecords("orders", 1, Ranges(), Ranges([Range(0, 1)])))
    assert [account.log for account in found.with_missing()] == [("orders", 0)]


def test_no_more_ranges_are_kept_than_so_many() -> None:
    found = ReaderAccounts()
    for at in range(3 * reader_accounts.MAX_RANGES):
        note(found, at, [Range(4 * at, 4 * at + 2)], [Range(4 * at, 4 * at + 1)])
    (account,) = found.with_missing()
    assert len(account.missing) <= reader_accounts.MAX_RANGES
    assert len(account.returned) <= reader_accounts.MAX_RANGES
