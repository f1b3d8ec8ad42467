"""Answers about a whole capture as tables, for Python programs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from dissector.engine.reading.capture import Capture, Window
from dissector.engine.tables.column_types import Columns
from dissector.errors import UsageError
from dissector.polars_extra import polars
from dissector.protocol.releases.removals import check_release
from dissector.query.exchange_contents import contents_among
from dissector.summary import upgrade_check
from dissector.summary.groups_reader import SECTIONS, GroupsReader
from dissector.summary.lag_intervals import LAG_SECTIONS, LagIntervals
from dissector.summary.sections import chosen_sections
from dissector.summary.statistics import GROUPS, Grouping, Statistics
from dissector.summary.version_offers import VersionOffers

if TYPE_CHECKING:
    from dissector.filter import Filter

Tables: TypeAlias = dict[str, polars.DataFrame]
"""Tables by name."""


class Parts(Protocol):
    """Reads a capture: the columns of `pairs`, window by window, as `Capture.parts` does."""

    def __call__(
        self, *, observe: Callable[[Window], object] | None, contents: Collection[str]
    ) -> Iterable[Columns]:
        """Yield them; `observe` gets all windows."""


def group_tables(capture: Capture, chosen: Filter | None, interval_s: float | None) -> Tables:
    """
    Return the groups of a capture.

    Args:
        capture: The capture.
        chosen: Passes the messages that count.
        interval_s: Seconds of an interval: the lag at the end of each; None: the end only.
    """
    if interval_s is None:
        reader = GroupsReader(capture, chosen)
        for window in capture.windows(gleaning=True):
            reader.add(window)
            del window  # frees its memory before the next window is read
        return _tables(reader.sections(), SECTIONS)
    lags = LagIntervals(capture, interval_s, chosen)
    reader = GroupsReader(capture, chosen, lags.count_members)
    for window in capture.windows(gleaning=True):
        reader.add(window)
        lags.add(window)
        del window
    return _tables(lags.sections(), LAG_SECTIONS)


def statistics_by(
    capture: Capture, parts: Parts, by: str | Iterable[str], chosen: Filter | None
) -> Statistics:
    """
    Return response times and errors.

    Args:
        capture: The capture.
        parts: Reads its exchanges that count.
        by: Lists of keys, separated by commas; a section for each. Empty: the usual four.
        chosen: The filter of these exchanges: topics that it excludes have no rows.

    Raises:
        UsageError: A key does not exist, or is given twice.
    """
    texts = [by] if isinstance(by, str) and by else list(by)
    sections = [rows for _, rows in chosen_sections(texts, ()).values()]
    groupings = dict(zip(texts, sections, strict=True)) or GROUPS
    return _statistics(parts, groupings, VersionOffers(capture), chosen)


def upgrade_table(
    capture: Capture, parts: Parts, to: str, *, clients: bool, internal: bool
) -> polars.DataFrame:
    """
    Return the API versions in use that a release removed or does not know.

    Raises:
        UsageError: The release is not known.
    """
    release = check_release(to)
    if release is None:
        known = f"{upgrade_check.OLDEST} to {upgrade_check.NEWEST}"
        raise UsageError(f"to takes a release of Kafka, {known}, not {to!r}")
    offers = VersionOffers(capture)
    uses = _statistics(parts, {"uses": upgrade_check.USES}, offers).sections()["uses"]
    if clients:
        found = upgrade_check.check_brokers(uses, offers, release)
        return table_of(found.rows, upgrade_check.BROKER_COLUMNS)
    found = upgrade_check.check_clients(uses, offers, release, internal=internal)
    return table_of(found.rows, upgrade_check.CLIENT_COLUMNS)


def _statistics(
    read: Parts,
    groupings: Mapping[str, Grouping],
    offers: VersionOffers,
    chosen: Filter | None = None,
) -> Statistics:
    """Return the statistics of what is read; `offers` learns from it if software is a key."""
    keys = {key for each in groupings.values() for key in each.keys}
    statistics = Statistics(groupings, offers.software_of, chosen)
    observe = offers.observe if "software" in keys else None
    for part in read(observe=observe, contents=contents_among(keys)):
        statistics.add(part)
    return statistics


def _tables(
    found: Mapping[str, Sequence[Mapping[str, Any]]],
    sections: Mapping[str, tuple[str, Sequence[str]]],
) -> Tables:
    return {name: table_of(rows, sections[name][1]) for name, rows in found.items()}


def table_of(rows: Iterable[Mapping[str, Any]], columns: Sequence[str] = ()) -> polars.DataFrame:
    """Return rows as a table; `columns` are those of one without rows."""
    listed = list(rows)
    if not listed:
        return polars.DataFrame(schema=list(columns))
    return polars.DataFrame(listed, infer_schema_length=None)
