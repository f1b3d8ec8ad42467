"""One exchange as an object, decoded on demand."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any
from uuid import UUID

from dissector.capture.tcp.connections import END_REASONS
from dissector.column_catalogue import EXCHANGES, names
from dissector.engine.exchanges.exchange_times import ExchangeTimes
from dissector.engine.exchanges.fact_columns import ExchangeSummaries
from dissector.engine.exchanges.log_columns import ACCOUNT_COLUMNS
from dissector.engine.exchanges.packet_columns import COMMENTS, LENGTHS, SECONDS, PacketColumns
from dissector.engine.facts.topic_table import TopicNames, Topics, may_define_names
from dissector.engine.tables.exchange_table import (
    BROKEN_REQUEST,
    BROKEN_RESPONSE,
    ENDING_AT,
    NONE,
    STATUS,
    Exchanges,
    Frames,
)
from dissector.errors import Problem
from dissector.hooks.hook_columns import HookColumns
from dissector.notebook_forms import notebook_form
from dissector.protocol.apis import api_name
from dissector.protocol.context import current, using
from dissector.protocol.facts import Facts, collect
from dissector.protocol.login_secrets import KnownSecrets
from dissector.protocol.messages import Message, decode_request, decode_response
from dissector.protocol.records_fields import record_problems

TOKEN = "SaslToken"
"""The name of raw SASL tokens in place of an API."""

COLUMNS = names(EXCHANGES)
"""The columns of `pairs`, in order."""

_PACKET_COLUMNS = frozenset((*SECONDS, *LENGTHS, *COMMENTS))


class Exchange(ExchangeTimes):
    """
    A request and its response, or the reason why one of them is missing.

    Attributes:
        capture: The file with the end of the request (of an orphan: the response).
        connection: Number of the TCP connection in the capture, from 0.
        client: `address:port` of the side that sends requests.
        broker: `address:port` of the other side.
        origin: The client before a proxy, from a PROXY protocol header, or `CONNECT` and the target
            of that request; None without one.
        status: One of `STATUS`, as `answered`, or `no_response` (none is due).
        request_packet: Number of the packet that completed the request, from 1 as Wireshark counts;
            None for an orphan.
        response_packet: The same for the response.
    """

    def __init__(
        self,
        table: Exchanges,
        row: int,
        *,
        capture: str,
        client: str,
        broker: str,
        names: TopicNames,
        origin: str | None = None,
        summaries: ExchangeSummaries | None = None,
        packets: PacketColumns | None = None,
        hooks: HookColumns | None = None,
    ) -> None:
        """
        Wrap a row of a table of exchanges.

        Args:
            table: The table.
            row: The row.
            capture: See above.
            client: See above.
            broker: See above.
            names: Known names of topic ids.
            origin: See above.
            summaries: The extracted columns of all rows.
            packets: Columns about the packets, for filters.
            hooks: Columns of hooks, for filters.
        """
        self._packets, self._hooks = packets, hooks
        self._table = table
        self._row = row
        self._names = names
        self.capture = capture
        self.client = client
        self.broker = broker
        self.origin = origin
        self.connection = int(table.connection[row])
        self.status = STATUS[table.status[row]]
        self.is_token = bool(table.token[row])
        self._summaries, self._schemas = summaries, current()
        self._is_for_programs = False

    def __repr__(self) -> str:
        version = "" if self.api_version is None else f" v{self.api_version}"
        name = f"{self.api or 'response without its request'}{version}"
        latency = "" if self.latency_ms is None else f", {self.latency_ms:.3f} ms"
        packets = (self.request_packet, self.response_packet)
        numbers = " and ".join(str(packet) for packet in packets if packet is not None)
        return (
            f"<Exchange {name}, id {self.correlation_id}, {self.client} -> {self.broker}, "
            f"{self.status}{latency}, packet {numbers}>"
        )

    def _repr_html_(self) -> str:
        return notebook_form(self)

    @cached_property
    def request(self) -> Message | None:
        """The decoded request; None for an orphan."""
        return self._prepared(self._decoded_request())

    @cached_property
    def response(self) -> Message | None:
        """The decoded response; None without one. An orphan has only a decoded header."""
        return self._prepared(self._decoded_response())

    def for_programs(self) -> Exchange:
        """Decode bodies as `BodyFields` from now on, and return this exchange."""
        self._is_for_programs = True
        for message in (self.__dict__.get("request"), self.__dict__.get("response")):
            self._prepared(message)
        return self

    def _prepared(self, message: Message | None) -> Message | None:
        if message is not None and self._is_for_programs:
            from dissector.engine.exchanges.body_fields import wrap_body

            wrap_body(message, self._names)
        return message

    def _decoded_request(self) -> Message | None:
        frame = self._table.frame(self._table.request, self._row)
        if frame is None:
            return None
        if self.is_token:
            return _token("request", frame, self._value(self._table.request, "size"))
        with using(self._schemas):
            broken_off = self._broken_off(BROKEN_REQUEST)
            size = self._value(self._table.request, "size")
            message = decode_request(frame, size, broken_off)
        return self._in_context(message)

    def _decoded_response(self) -> Message | None:
        frame = self._table.frame(self._table.response, self._row)
        if frame is None:
            return None
        if self.is_token:
            return _token("response", frame, self._value(self._table.response, "size"))
        request = self.request
        key, version = (request.api_key, request.shown_version) if request else (None, None)
        broken_off = self._broken_off(BROKEN_RESPONSE)
        with using(self._schemas):
            size = self._value(self._table.response, "size")
            message = decode_response(frame, key, version, size, broken_off)
        if self._table.answers_acks_0[self._row]:
            what = "response to a Produce request with acks = 0, which expects none"
            message.problems.append(Problem(what, "response", kind="unexpected_response"))
        return self._in_context(message)

    def kept(self) -> Exchange:
        """Return a copy with its own bytes, which outlives the window."""
        with using(self._schemas):
            kept = Exchange(
                self._table.detached(self._row),
                0,
                capture=self.capture,
                client=self.client,
                broker=self.broker,
                names=self._names,
                origin=self.origin,
                packets=self._packets,
            )
            return kept.for_programs() if self._is_for_programs else kept

    @property
    def known_secrets(self) -> KnownSecrets:
        """The secrets that logins on its connection showed."""
        return self._table.known_secrets(self._row)

    @property
    def messages(self) -> list[Message]:
        """Captured messages: request, then response."""
        return [message for message in (self.request, self.response) if message is not None]

    @property
    def api_key(self) -> int | None:
        """The key of the API; None for an orphan and for raw SASL tokens."""
        return _integer(self._table.api_key[self._row])

    @cached_property
    def api(self) -> str | None:
        """The name of the API."""
        if self.is_token:
            return TOKEN
        key = self.api_key
        if key is None:
            return None
        if self._schemas is current():
            return api_name(key)
        with using(self._schemas):
            return api_name(key)

    @property
    def api_version(self) -> int | None:
        """The version of the request."""
        return _integer(self._table.api_version[self._row])

    @property
    def correlation_id(self) -> int | None:
        """The number that request and response share."""
        return _integer(self._table.correlation_id[self._row])

    @property
    def client_id(self) -> str | None:
        """The client id of the request."""
        if self._summaries is not None:
            return self._summaries.client_ids[int(self._summaries.client_id[self._row])]
        return self.request.client_id if self.request else None

    @property
    def request_packet(self) -> int | None:
        """Number of the packet that completed the request, from 1."""
        return self._number_of(self._table.request)

    @property
    def response_packet(self) -> int | None:
        """Number of the packet that completed the response, from 1."""
        return self._number_of(self._table.response)

    @property
    def request_offset(self) -> int | None:
        """Offset of the request's frame in its stream."""
        return self._value(self._table.request, "offset")

    @property
    def is_logged(self) -> bool:
        """Whether it is of a request log: its records and bytes were not captured."""
        if self._packets is None or not self._packets.logs:
            return False
        return self._packets.is_logged(self._table, self._row)

    @cached_property
    def account(self) -> Mapping[str, Any]:
        """What the broker says of it in its request log, by the columns of that."""
        if self._packets is None:
            return dict.fromkeys(ACCOUNT_COLUMNS)
        return self._packets.account(self._table, self._row)

    @property
    def logged_record_bytes(self) -> list[int]:
        """Of a request log, the sizes of its records, in the order of its partitions."""
        if self._packets is None:
            return []
        return self._packets.logs.record_bytes(self._table, self._row)

    @property
    def request_bytes(self) -> int | None:
        """Size of the request's frame, without its 4-byte size."""
        return None if self.is_logged else self._value(self._table.request, "size")

    @property
    def response_bytes(self) -> int | None:
        """Size of the response's frame, without its 4-byte size."""
        return None if self.is_logged else self._value(self._table.response, "size")

    @property
    def errors(self) -> list[str]:
        """The names of the errors in the response, each once."""
        if self._summaries is not None:
            return list(self._summaries.error_lists[int(self._summaries.errors[self._row])])
        return list(self.facts[1].errors)

    @cached_property
    def topics(self) -> list[str]:
        """The topics of request and response, each once; an id without a known name as text."""
        topics: Topics
        if self._summaries is not None:
            topics = self._summaries.topic_lists[int(self._summaries.topics[self._row])]
        else:
            topics = (*self.facts[0].topics, *self.facts[1].topics)
        return list(dict.fromkeys(self._names.name(topic) for topic in topics))

    @cached_property
    def problems(self) -> list[Problem]:
        """The problems of both messages, including their records'."""
        if self._summaries is not None:
            return list(self._summaries.problem_lists[int(self._summaries.problems[self._row])])
        return [problem for message in self.messages for problem in self.problems_of(message)]

    @property
    def info(self) -> str | None:
        """What is asked, and the answer, in plain words; reads the bodies. None for nothing."""
        from dissector.engine.exchanges.exchange_info import exchange_info

        return str(exchange_info(self)) or None

    def problems_of(self, message: Message) -> list[Problem]:
        """Return the problems of one of the messages."""
        return [*message.problems, *record_problems(message)]

    def place_of(self, kind: str) -> tuple[int, int]:
        """Return offset in the stream and side (0 or 1) of the frame of one of its messages."""
        client = int(self._table.client[self._row])
        if kind == "request":
            return int(self._table.request.offset[self._row]), client
        return int(self._table.response.offset[self._row]), 1 - client

    @cached_property
    def facts(self) -> tuple[Facts, Facts]:
        """The summary fields of request and response, as the codecs decode them."""
        facts = Facts(), Facts()
        for message, target in ((self.request, facts[0]), (self.response, facts[1])):
            if message is not None and message.body is not None and message.schema is not None:
                collect(message.schema, message.api_version or 0, message.body, target)
                if message.is_assumed and _may_hide(message):
                    target.topics.clear()
                self._names.learn(target.names)
        return facts

    def learn(self) -> None:
        """
        Learn the names of topic ids that this exchange defines, if its API can define any.

        In a capture that can be read only once, its own topics get the names known now: the result
        must not depend on when they are read.
        """
        api_and_version = self._table.api_and_version(self._row)
        if api_and_version is not None and may_define_names.under(self._schemas, *api_and_version):
            self.facts  # noqa: B018
        if not self._names.is_rereadable:
            self.topics  # noqa: B018

    def known_topic(self, topic_id: UUID) -> str | None:
        """Return the name of a topic id; None if the capture does not define it."""
        return self._names.find_name(topic_id)

    def column(self, name: str) -> Any:
        """Return the value of a column of `pairs`, on request too, or of `PacketColumns`."""
        if name in _PACKET_COLUMNS:
            packets = self._packets
            return None if packets is None else packets.value(self._table, self._row, name)
        if name in ACCOUNT_COLUMNS:
            return self.account[name]
        value = getattr(self, name)
        return [str(problem) for problem in value] if name == "problems" else value

    def body(self, kind: str) -> Mapping[str, Any] | None:
        """Return the decoded body of the `request` or the `response`, or the columns of `hook`s."""
        if kind == "hook":
            return None if self._hooks is None else self._hooks.of(self)
        message = self.request if kind == "request" else self.response
        return None if message is None else message.body

    def row(self) -> dict[str, Any]:
        """Return the columns of `pairs`, in order, and of logs those of the broker's account."""
        has_logs = self._packets is not None and bool(self._packets.logs)
        names = (*COLUMNS, *ACCOUNT_COLUMNS) if has_logs else COLUMNS
        return {name: self.column(name) for name in names}

    def _in_context(self, message: Message) -> Message:
        """Tell a message what the capture knows that decides about secrets in it."""
        # Not `self.known_topic`: a cycle of references would keep the whole window for long.
        message.known_secrets, message.topic_name = self.known_secrets, self._names.find_name
        return message

    def _broken_off(self, message: int) -> str:
        """Return the kind of connection end within a message; empty without one."""
        flags = int(self._table.broken_off[self._row])
        return END_REASONS[flags >> ENDING_AT] if flags & message else ""

    def _number_of(self, frames: Frames) -> int | None:
        packet = self._value(frames, "packet")
        return None if packet is None else packet + 1


def _may_hide(message: Message) -> bool:
    from dissector.protocol.embedded.masking import may_hold_secrets_anywhere

    return may_hold_secrets_anywhere(message)


def _integer(value: Any) -> int | None:
    return None if value == NONE else int(value)


def _token(kind: Any, frame: bytes, size: int | None) -> Message:
    """Return a raw SASL token as a message: no header, no body."""
    return Message(kind, frame, len(frame) if size is None else size)
