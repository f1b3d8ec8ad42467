"""
Applies rules to a capture, window by window, and collects the verdict.

The state of a connection is dropped when the connection ends, and the state of the capture is
bounded, so memory does not grow with the capture.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from time import perf_counter_ns
from typing import NamedTuple

import numpy as np

from conform.evidence.batch_summaries import PlainBatches
from conform.evidence.client_software import learn_software
from conform.evidence.observation import BatchTurn, Closing, Talk, Turn, World
from conform.evidence.reporter import Say, Seen, where_text
from conform.registry.rule import Call, Glance, Rule
from conform.registry.verdict import Tally, Verdict
from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.exchanges.exchange_facts import read_topic_names
from dissector.engine.reading.capture import Capture, Reading, Window
from dissector.engine.tables.exchange_table import NONE, Exchanges
from dissector.protocol.apis import api_name

API_VERSIONS = 18


class Judge:
    """
    Applies rules to a capture.

    Args:
        rules: The rules.
        timed: Whether to measure the time of each rule.

    Attributes:
        verdict: The verdict so far.
    """

    def __init__(self, rules: Iterable[Rule], *, timed: bool = False) -> None:
        chosen = sorted(rules, key=lambda rule: rule.order)
        self.verdict = Verdict(chosen)
        self._timed = timed
        self._seen = Seen()
        self._says = {rule.id: Say(rule, self.verdict, self._seen) for rule in chosen}
        self._by_api: dict[tuple[str, int | None], list[_Group]] = {}
        self._world = World()
        # Exchanges that no rule examines, by API and reason; only counted, as there may be many.
        self._doubted: Counter[tuple[int | None, str]] = Counter()
        self._talks: dict[int, Talk] = {}
        self._ended: set[int] = set()

    def capture(self, capture: Capture) -> Verdict:
        """Judge a whole capture."""
        for window in capture.windows():
            self.window(capture, window)
        return self.finish()

    def window(self, capture: Capture, window: Window) -> None:
        """Judge the exchanges that ended in one window of a capture."""
        reading, table = capture.reading, window.exchanges
        assert reading is not None
        self.verdict.captures = capture.paths
        self.verdict.problems += [f"{name}: {problem}" for name, problem in window.problems]
        for number in self._connections(window):
            self._note_losses(reading, number)
        self._note_repeats(table)
        capture.names.learn(read_topic_names(table))
        plain = PlainBatches(table)
        for row, exchange in enumerate(self._exchanges(capture, reading, table)):
            talk = self._talks[exchange.connection]
            self._judge(Turn(exchange, talk, self._world, plain.reader(row)))
        for number in [n for n in self._talks if reading.streams.connections[n].ended]:
            self._close(self._talks.pop(number), reading.streams.connections[number].ended)
            self._ended.add(number)

    def finish(self) -> Verdict:
        """End the capture, and with it all open connections; return the verdict."""
        for talk in self._talks.values():
            self._close(talk, "")
        self._talks.clear()
        for (key, doubt), count in self._doubted.items():
            for group in self._groups("exchange", key):
                for _, say in group.members:
                    say.unjudged(doubt, count)
        self._doubted.clear()
        return self.verdict

    def _connections(self, window: Window) -> list[int]:
        return sorted(set(window.exchanges.connection.tolist()) | self._talks.keys())

    def _note_losses(self, reading: Reading, number: int) -> None:
        """Record why a connection is partial, as soon as it is; it never becomes whole again."""
        talk = self._talks.get(number)
        if talk is None:
            known = reading.correlator.state_of(number)
            client = known.client if known and known.client is not None else 0
            talk = self._talks[number] = Talk(number, *reading.client_and_broker(number, client))
        talk.torn = talk.torn or torn(reading, number)
        if not talk.partial:
            talk.partial = losses(reading, number)
        if not talk.partial and number in self._ended:
            talk.partial = "what the connection said before its end is forgotten"
        if not talk.partial:
            talk.skipped, talk.partial = _skipped(reading, number)
            talk.torn = talk.torn or talk.partial
        self._world.partial = self._world.partial or talk.partial

    def _note_repeats(self, table: Exchanges) -> None:
        """Mark connections with repeated correlation ids, which are correlated by order alone."""
        asked = table.request.packet != NONE
        number, found = table.connection[asked], table.correlation_id[asked]
        order = np.lexsort((found, number))
        number, found = number[order], found[order]
        same = (number[1:] == number[:-1]) & (found[1:] == found[:-1])
        for each in np.unique(number[1:][same]).tolist():
            self._talks[each].repeats = True

    def _exchanges(
        self, capture: Capture, reading: Reading, table: Exchanges
    ) -> Iterator[Exchange]:
        """Yield the rows of a window as objects; the addresses come from the connection."""
        asked = table.request.packet
        files = reading.files_of(np.where(asked == NONE, table.response.packet, asked))
        rows = zip(table.connection.tolist(), files.codes.tolist(), strict=True)
        for row, (number, code) in enumerate(rows):
            talk = self._talks[number]
            yield Exchange(
                table,
                row,
                capture=files.values[code],
                client=talk.client.address,
                broker=talk.broker.address,
                names=capture.names,
            )

    def _judge(self, turn: Turn) -> None:
        """Apply the rules to an exchange and its batches; record an exception as a fault."""
        try:
            self._judge_exchange(turn)
        except Exception as error:
            self.verdict.fault("", error, where_text(turn))

    def _judge_exchange(self, turn: Turn) -> None:
        exchange, key = turn.exchange, turn.api_key
        if key == API_VERSIONS:
            learn_software(turn)
        if doubt := turn.talk.doubt(turn):
            self._doubted[key, doubt] += 1
            turn.talk.is_disordered |= exchange.status != "answered"
            return
        self._ask(self._groups("exchange", key), turn)
        batch_groups = self._groups("batch", key)
        if batch_groups:
            for message, field in turn.carried:
                for index in range(len(field.batches)):
                    self._ask(batch_groups, BatchTurn(turn, message, field, index))
        turn.talk.note(turn)

    def _ask(self, groups: list[_Group], turn: Closing) -> None:
        """Apply rules to one observation."""
        self._seen.turn = turn
        for glance, members, tallies in groups:
            kept = None if glance is None else self._glanced(glance, turn)
            if kept is not None:
                for tally in tallies:
                    tally.judged += kept
                continue
            for call, say in members:
                try:
                    call(turn, say)
                except Exception as error:
                    say.failed(error)

    def _glanced(self, glance: Glance, turn: Closing) -> int | None:
        """Return the result of a fast check; None if it fails, so that its rules run in full."""
        try:
            return glance(turn)
        except Exception as error:
            self.verdict.fault("", error, where_text(turn))
            return None

    def _groups(self, on: str, key: int | None) -> list[_Group]:
        """Return the rules for one kind of observation of an API, grouped by their fast check."""
        found = self._by_api.get((on, key))
        if found is None:
            api = None if key is None else api_name(key)
            groups: dict[Glance | None, _Group] = {}
            for rule in self.verdict.rules:
                if rule.on == on and (not rule.apis or api in rule.apis):
                    group = groups.setdefault(rule.glance, _Group(rule.glance, [], []))
                    tally = self.verdict.tallies[rule.id]
                    call = _timed(rule.call, tally) if self._timed else rule.call
                    group.members.append((call, self._says[rule.id]))
                    group.tallies.append(tally)
            found = self._by_api[on, key] = list(groups.values())
        return found

    def _close(self, talk: Talk, ended: str) -> None:
        talk.ended = ended
        closing = Closing(talk, self._world)
        self._ask(self._groups("close", None), closing)


class _Group(NamedTuple):
    """Rules with the same fast check, or with none: their functions, and their counts."""

    glance: Glance | None
    members: list[tuple[Call, Say]]
    tallies: list[Tally]


def _timed(call: Call, tally: Tally) -> Call:
    """Return a rule that adds its run time to its counts."""

    def measured(turn: Closing, say: Say) -> None:
        begun_ns = perf_counter_ns()
        try:
            call(turn, say)
        finally:
            tally.seconds += (perf_counter_ns() - begun_ns) / 1e9

    return measured


def losses(reading: Reading, number: int) -> str:
    """Return why messages of a connection were not captured; empty: all were."""
    if not reading.streams.connections.has_both_syns(number):
        return "the capture begins in the middle of the connection"
    return torn(reading, number)


def torn(reading: Reading, number: int) -> str:
    """Return why messages since the capture began were not captured; empty: all were."""
    connection = reading.streams.connections[number]
    if any(side.gap_bytes or side.gaps for side in connection.sides):
        return "packets of the connection are missing"
    if any(side.cut_bytes for side in connection.sides):
        return "packets of the connection are cut"
    return ""


def _skipped(reading: Reading, number: int) -> tuple[tuple[int, int], str]:
    """Return the skipped bytes of client and broker, which are not frames, and the reason."""
    known = reading.correlator.state_of(number)
    if known is None or not any(known.skipped):
        return (0, 0), ""
    skipped = known.skipped if known.client != 1 else (known.skipped[1], known.skipped[0])
    return skipped, "bytes of the connection can't be read as Kafka"
