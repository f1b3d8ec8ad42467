"""Records returned to readers, in bounded memory."""

from __future__ import annotations

from replay.mapping import reader_accounts
from replay.mapping.reader_accounts import ReaderAccounts, ReturnedRecords
from replay.model.offset_ranges import Range, Ranges


def note(found: ReaderAccounts, step: int, captured: list[Range], live: list[Range]) -> None:
    found.record(1, step, ReturnedRecords("orders", 0, Ranges(captured), Ranges(live)))


def missing_ranges(found: ReaderAccounts) -> list[Range]:
    return [each for account in found.with_missing() for each in account.missing]


def test_missing_records_may_arrive_in_a_later_response() -> None:
    found = ReaderAccounts()
    note(found, 4, [Range(0, 10)], [Range(0, 3)])
    note(found, 5, [Range(10, 20)], [])
    assert missing_ranges(found) == [Range(3, 20)]
    (account,) = found.with_missing()
    assert [account.step_of(each) for each in (3, 10, 19)] == [4, 5, 5]
    note(found, 6, [], [Range(3, 15)])
    assert missing_ranges(found) == [Range(15, 20)]
    note(found, 7, [Range(0, 10)], [Range(15, 20)])
    assert missing_ranges(found) == []


def test_readers_and_logs_are_distinguished() -> None:
    found = ReaderAccounts()
    found.record(1, 0, ReturnedRecords("orders", 0, Ranges([Range(0, 1)]), Ranges()))
    found.record(2, 1, ReturnedRecords("orders", 0, Ranges(), Ranges([Range(0, 1)])))
    found.record(1, 2, ReturnedRecords("orders", 1, Ranges(), Ranges([Range(0, 1)])))
    assert [account.log for account in found.with_missing()] == [("orders", 0)]


def test_number_of_ranges_is_bounded() -> None:
    found = ReaderAccounts()
    for at in range(3 * reader_accounts.MAX_RANGES):
        note(found, at, [Range(4 * at, 4 * at + 2)], [Range(4 * at, 4 * at + 1)])
    (account,) = found.with_missing()
    assert len(account.missing) <= reader_accounts.MAX_RANGES
    assert len(account.returned) <= reader_accounts.MAX_RANGES
