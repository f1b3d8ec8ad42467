"""
Whether brokers offer the versions of the exchanges of a window, in columns.

The offers are those of the state before the window, and those of the ApiVersions responses in it,
read from the tape. What the rules would not take from a response, or in doubt, is unknown until the
next offer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from conform.evidence.bounded_memory import BudgetReached
from conform.evidence.observation import CaptureState, ConnectionState
from conform.evidence.offered_versions import ConnectionOffer, OffersByBroker
from conform.registry.screened_columns import (
    NO_OFFER,
    UNKNOWN_OFFER,
    Bools,
    KnownOffers,
    OfferColumns,
    ScreenedRows,
    VersionColumns,
)
from dissector.engine.tape.tape import FITS, Tape
from dissector.protocol.headers import API_VERSIONS
from dissector.protocol.program import FieldRef, field_roles

Ints: TypeAlias = NDArray[np.int64]

_OTHER, _ERROR, _KEY, _LOWEST, _HIGHEST = range(5)
_PATHS = {
    "error_code": _ERROR,
    "api_keys.api_key": _KEY,
    "api_keys.min_version": _LOWEST,
    "api_keys.max_version": _HIGHEST,
}

_KEYS = 2**16
"""Distance of the places of offers; keys have 16 bits, with a sign."""

_NOWHERE = -(2**62)
"""Below all places."""


def known_offers(
    states: Sequence[ConnectionState], connection: Ints, capture_state: CaptureState
) -> KnownOffers:
    """Return the offers before a window, whose exchanges are of the connections in these states."""
    ranges = _Ranges()
    by_connection = [ranges.of_connection(each) for each in states]
    brokers = {each.broker.address: 0 for each in states}
    brokers = dict(zip(brokers, range(len(brokers)), strict=True))
    broker = np.array([brokers[each.broker.address] for each in states], np.int64)
    by_broker = ranges.of_brokers(brokers, capture_state)
    is_paired = [not each.incomplete_reason and not each.repeats_correlation_ids for each in states]
    offers = np.array(by_connection, np.int64).reshape(-1, 2)
    broker_offers = np.array(by_broker, np.int64).reshape(-1, 2)
    return KnownOffers(
        ranges.distinct,
        connection,
        broker[connection],
        offers[:, 0],
        broker_offers[:, 0],
        offers[:, 1],
        broker_offers[:, 1],
        np.array(is_paired, np.bool_)[connection],
    )


class _Ranges:
    """Numbers the distinct offers; most connections share one."""

    def __init__(self) -> None:
        self.distinct: list[Mapping[int, tuple[int, int]]] = []
        self._numbers: dict[int, int] = {}

    def of_connection(self, state: ConnectionState) -> tuple[int, int]:
        """Return the last offer on a connection, and its packet."""
        try:
            offer = state.state(ConnectionOffer)
        except BudgetReached:
            return UNKNOWN_OFFER, 0
        return self._number(offer.ranges), offer.packet

    def of_brokers(
        self, addresses: Mapping[str, int], state: CaptureState
    ) -> list[tuple[int, int]]:
        """Return the last offers of brokers, likewise."""
        try:
            offers = state.state(OffersByBroker)
        except BudgetReached:
            return [(UNKNOWN_OFFER, 0)] * len(addresses)
        found = [offers.get(address, (0, None)) for address in addresses]
        return [(self._number(ranges), packet) for packet, ranges in found]

    def _number(self, ranges: Mapping[int, tuple[int, int]] | None) -> int:
        if ranges is None:
            return NO_OFFER
        number = self._numbers.setdefault(id(ranges), len(self.distinct))
        if number == len(self.distinct):
            self.distinct.append(ranges)
        return number


class WindowOffers:
    """The offers of a window."""

    def __init__(self, rows: ScreenedRows) -> None:
        self._rows = rows
        self._has_error = np.zeros(len(rows.table), np.bool_)
        self._items: list[Ints] = []

    def read(self, tape: Tape, rows: Ints) -> None:
        """Take the ApiVersions responses on a tape, whose messages are of some exchanges."""
        roles = field_roles(_role)
        at = np.flatnonzero(roles[tape.field])
        at = at[tape.state[tape.message[at]] == FITS]
        role, row, value = roles[tape.field[at]], rows[tape.message[at]], tape.value[at]
        self._has_error[row[(role == _ERROR) & (value != 0)]] = True
        # Each item has one of each, in the same order.
        items = [value[role == each] for each in (_KEY, _LOWEST, _HIGHEST)]
        self._items.append(np.stack([row[role == _KEY], *items]))

    def columns(self, is_canonical: Bools, is_refused: Bools) -> VersionColumns:
        """Return what is offered at each exchange; their messages may be canonical."""
        rows, known = self._rows, self._rows.offers
        is_answer = rows.is_of(API_VERSIONS) & rows.has_response
        is_certain = is_answer & is_canonical & known.is_paired
        is_offer = is_certain & ~self._has_error
        offer = np.where(is_answer & ~is_certain, UNKNOWN_OFFER, NO_OFFER)
        count = int(is_offer.sum())
        offer[is_offer] = np.arange(count) + len(known.ranges)
        ranges = self._range_table(offer)
        made = np.flatnonzero(offer != NO_OFFER)

        def columns(group: Ints, before: Ints, packet_before: Ints) -> OfferColumns:
            last = _last_before(group, made)
            at = np.where(last < 0, before[group], offer[last])
            packet = np.where(last < 0, packet_before[group], rows.table.response.packet[last])
            key, version = rows.table.api_key, rows.table.api_version
            is_known = (at != UNKNOWN_OFFER) & (key >= 0)
            is_before = (at >= 0) & (rows.table.request.packet >= packet)
            return OfferColumns(is_known, is_before, ranges.have(at, key, version))

        return VersionColumns(
            columns(known.connection, known.by_connection, known.packet_by_connection),
            columns(known.broker, known.by_broker, known.packet_by_broker),
            is_refused,
        )

    def _range_table(self, offer: Ints) -> _RangeTable:
        """Return the versions that are offered before the window, and by offers in it."""
        known = self._rows.offers.ranges
        items = ((at, *item) for at, each in enumerate(known) for item in each.items())
        before = np.array([(at, key, *limits) for at, key, limits in items], np.int64)
        made = np.concatenate([np.empty((4, 0), np.int64), *self._items], axis=1)
        made = made[:, offer[made[0]] >= 0]
        made[0] = offer[made[0]]
        at, key, lowest, highest = np.concatenate([before.reshape(-1, 4).T, made], axis=1)
        return _RangeTable(at * _KEYS + key, lowest, highest)


class _RangeTable:
    """The versions of APIs in offers, a row each: a window may have very many small offers."""

    def __init__(self, place: Ints, lowest: Ints, highest: Ints) -> None:
        order = np.argsort(place, kind="stable")
        self._place = np.append(_NOWHERE, place[order])
        self._lowest, self._highest = np.append(0, lowest[order]), np.append(-1, highest[order])

    def have(self, offer: Ints, key: Ints, version: Ints) -> Bools:
        """Return whether offers have versions of APIs; the last item of an API counts."""
        place = offer * _KEYS + key
        at = np.searchsorted(self._place, place, side="right") - 1
        found: Bools = (self._place[at] == place) & (self._lowest[at] <= version)
        return found & (version <= self._highest[at])


def _last_before(group: Ints, made: Ints) -> Ints:
    """Return of each exchange the last one before it, of some, that is of its group; or -1."""
    count = len(group)
    none = np.full(count, -1, np.int64)
    if not len(made):
        return none
    places = np.sort(group[made] * count + made)
    at = np.searchsorted(places, group * count + np.arange(count)) - 1
    is_found = (at >= 0) & (places[at] // count == group)
    return np.where(is_found, places[at] % count, none)


def _role(ref: FieldRef) -> int:
    if ref.key != API_VERSIONS or ref.kind != "response":
        return _OTHER
    return _PATHS.get(ref.path, _OTHER)
