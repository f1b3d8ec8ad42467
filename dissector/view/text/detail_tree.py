"""
A message as a tree of fields, as in the detail pane of Wireshark.

Structures embedded in bytes fields are shown below them: record batches and their records,
subscriptions and assignments of group members, the request inside an Envelope, Kafka's own records.
Secrets are masked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dissector.protocol.embedded.control_payloads import decode_control
from dissector.protocol.embedded.fields import ENVELOPE, decode_field, enveloped_request
from dissector.protocol.embedded.masking import (
    is_secret_record,
    is_secret_topic,
    secret_ranges,
    secret_spans,
)
from dissector.protocol.embedded.own_topics import DecodedRecord, decode_record
from dissector.protocol.embedded.reading import Embedded
from dissector.protocol.embedded.sasl_tokens import decode_token
from dissector.protocol.embedded.secrecy.hidden_records import records_are_hidden
from dissector.protocol.embedded.secrecy.setting_records import is_settings_topic, masked_settings
from dissector.protocol.login_secrets import knowing
from dissector.protocol.messages import Message
from dissector.protocol.records import parse_records
from dissector.protocol.spans import Span, spans
from dissector.view.text.batch_nodes import RecordsPlace, batch_nodes
from dissector.view.text.decoded_nodes import ReadValue, decoded_nodes
from dissector.view.text.escape import escaped, hexed
from dissector.view.text.field_nodes import (
    MASK,
    NodeOptions,
    TopicName,
    field_nodes,
    value_text,
)
from dissector.view.text.record_nodes import AnyRecord, RecordOptions
from dissector.view.text.tree_node import Block, Load, Place, TreeNode, tree_lines

_INDEX = re.compile(r"\[\d+\]")
_HEADER_NAMES = {
    "request_api_key": "api_key",
    "request_api_version": "api_version",
    "correlation_id": "correlation_id",
    "client_id": "client_id",
}
"""The fields of headers in display filters."""


def detail_tree(
    message: Message,
    *,
    request: Message | None = None,
    mechanism: str | None = None,
    topic_name: TopicName = lambda topic_id: None,
    show_secrets: bool = False,
    read_value: ReadValue | None = None,
) -> list[str]:
    """
    Return the lines of a message's tree.

    Positions are offsets in the frame, without its 4-byte size; `!` begins a line about a problem.

    Args:
        message: A request or response; without header and problems, it is a raw SASL token.
        request: The request of a response; it determines the content of an Envelope.
        mechanism: The SASL mechanism of the connection, if known.
        topic_name: Returns the name of a topic id, or None.
        show_secrets: Whether passwords, tokens and the like are shown.
        read_value: Decodes keys and values of records; None: they are not decoded.
    """
    block = Block(message.kind, message.frame)
    tree = _DetailTree(message, request, mechanism, topic_name, show_secrets, block)
    tree.read_value = read_value
    return tree_lines(tree.root())


def detail_node(
    message: Message,
    *,
    request: Message | None = None,
    topic_name: TopicName = lambda topic_id: None,
    show_secrets: bool = False,
    read_value: ReadValue | None = None,
) -> TreeNode:
    """
    Return the root of the same tree, with positions and filter names of fields.

    Nodes are made when they are loaded, which is to happen under the message's schemas. The root
    has the block of the frame. Records have places, and nodes for their fields.
    """
    block, body = Block(message.kind, message.frame), None
    schema, version = message.schema, message.api_version
    if message.body_start and schema is not None and version is not None:
        body = spans(schema, version, message.frame, message.body_start)
    tree = _DetailTree(
        message, request, None, topic_name, show_secrets, block, is_opened=True, body_spans=body
    )
    tree.read_value = read_value
    block.masked = tree.masked_ranges()
    return tree.root()


@dataclass(slots=True)
class _DetailTree:
    """
    One message; `inner` if it is in an Envelope. `base` is added to its positions in the block.

    `is_opened`: nodes are opened one by one, and have names in filters. `body_spans`: the fields of
    the body, if they were found before. `read_value` decodes keys and values of records.
    """

    message: Message
    request: Message | None
    mechanism: str | None
    topic_name: TopicName
    show_secrets: bool
    block: Block
    base: int = 0
    inner: bool = False
    is_opened: bool = False
    body_spans: Span | None = None
    read_value: ReadValue | None = None

    def root(self) -> TreeNode:
        message = self.message
        if message.correlation_id is None:
            return self.without_header()
        version = "" if message.shown_version is None else f" v{message.shown_version}"
        title = f"{message.api or 'unknown'}{version} {message.kind}, {message.size:,} bytes"
        return TreeNode(title, place=self.whole, load=self.parts, has_range=False)

    @property
    def whole(self) -> Place:
        return Place(self.block, self.base, self.base + len(self.message.frame))

    def parts(self) -> list[TreeNode]:
        """Return header, body and problems."""
        # The nodes of an opened tree were found for its block.
        is_known = self.is_opened and not self.inner
        masked = self.block.masked if is_known else self.masked_ranges()
        return [*self.header_and_body(masked), *self.problems()]

    def options(
        self, masked: Sequence[tuple[int, int]], filter_path: Callable[[str], str]
    ) -> NodeOptions:
        """Return the display options of the header or the body."""
        return NodeOptions(
            f"{self.message.api} {self.message.kind}",
            self.topic_name,
            self.block,
            self.base,
            masked,
            self.nested,
            filter_path,
        )

    def problems(self) -> list[TreeNode]:
        """Return the nodes of the message's problems."""
        nodes = []
        for problem in self.message.problems:
            at = None if problem.position is None else self.base + problem.position
            place = None if at is None else Place(self.block, at, at + 1)
            nodes.append(TreeNode.problem(escaped(str(problem)), place))
        return nodes

    def filter_path(self, path: str) -> str:
        """Return the path of a body's field in display filters."""
        if not self.is_opened or self.inner:
            return ""
        plain = _INDEX.sub("", path)
        return "" if "tag " in plain else f"{self.message.kind}.{plain}"

    def header_path(self, path: str) -> str:
        """Return the name of a header's field in display filters."""
        return _HEADER_NAMES.get(path, "") if self.is_opened and not self.inner else ""

    def masked_ranges(self) -> list[tuple[int, int]]:
        """Return the ranges of the frame that are secret."""
        message = self.message
        if self.show_secrets:
            return []
        if message.correlation_id is None and not message.problems:
            return [(0, len(message.frame))]
        if self.inner and message.schema is None:
            # The enclosing Envelope is masked too if its content is unknown.
            return [(message.body_start, len(message.frame))]
        return secret_ranges(message, self.request, self.body_spans)

    def without_header(self) -> TreeNode:
        """Show a frame that is too short for a header, or a raw SASL token."""
        message = self.message
        if message.problems:
            text = hexed(message.frame)
            return TreeNode(message.kind, text, self.whole, self.problems, value=message.frame)
        token = decode_token(message.frame, self.mechanism, message.kind == "request")
        shown = hexed(message.frame) if self.show_secrets else MASK
        data = TreeNode("bytes", shown, self.whole, is_masked=not self.show_secrets)
        return TreeNode(
            f"SASL token, {message.kind}",
            escaped(token.text),
            self.whole,
            lambda: [data],
            has_range=False,
        )

    def header_and_body(self, masked: Sequence[tuple[int, int]]) -> list[TreeNode]:
        schema, version = self.message.header
        root = spans(schema, version, self.message.frame)
        header = _heading("header", root, self.options(masked, self.header_path))
        if not root.problem:
            return [header, *self.body(self.options(masked, self.filter_path))]
        # Without the start of the body its secrets can't be located, so all of it is masked.
        masked = [] if self.show_secrets else [(root.end, len(self.message.frame))]
        options = self.options(masked, self.filter_path)
        return [header, *self.undeclared_bytes("not read", root.end, options)]

    def body(self, options: NodeOptions) -> list[TreeNode]:
        message = self.message
        schema, version = message.schema, message.api_version
        if schema is None or version is None:
            return self.undeclared_bytes("body", message.body_start, options)
        root = self.body_spans or spans(schema, version, message.frame, message.body_start)
        remainder = "not read" if root.problem else "left over"
        return [
            _heading("body", root, options),
            *self.undeclared_bytes(remainder, root.end, options),
        ]

    def undeclared_bytes(self, name: str, start: int, options: NodeOptions) -> list[TreeNode]:
        """Show the bytes from `start` on as not covered by a declaration."""
        data = self.message.frame[start:]
        if not data:
            return []
        span = Span(name, "", None, start, start + len(data), data)
        is_masked = options.is_masked(span)
        place = options.place(span.start, span.end)
        return [TreeNode(name, MASK if is_masked else hexed(data), place, is_masked=is_masked)]

    def nested(self, span: Span, topic: str | None) -> Load | None:
        """Return how to load the structure embedded in a bytes field of the message."""
        if not isinstance(span.value, bytes) or not span.value or span.declared is None:
            return None
        base = self.base + span.end - len(span.value)
        if span.declared.type == "records":
            data, path = span.value, self.filter_path(span.path)
            return lambda: self.records(data, RecordsPlace(self.block, base, path), topic)
        embedded = decode_field(self.message, span.path, span.value, self.request, self.mechanism)
        return None if embedded is None else lambda: self.embedded(embedded, self.block, base)

    def embedded(self, found: Embedded, block: Block | None, base: int) -> list[TreeNode]:
        """Show an embedded structure that begins at `base` of a block."""
        if found.message is not None:
            return self.inner_message(found.message, block, base)
        root = found.spans()
        if root is None:
            return [_undeclared_value(found), *_problems(found, block, base)]
        inner = {each.path: each for each in found.inner}

        def nested(span: Span, topic: str | None) -> Load | None:
            each = inner.get(span.path)
            if each is None or (block is None and each.message is not None):
                return None
            return lambda: self.embedded(each, block, base + span.end - len(each.data))

        with knowing(self.message.known_secrets):
            masked = () if self.show_secrets else secret_spans(root)
        options = NodeOptions(found.name, self.topic_name, block, base, masked, nested)
        version = f" v{found.written_version}"
        return [
            TreeNode(
                f"{found.name}{version}",
                place=options.place(root.start, root.end),
                load=lambda: [*field_nodes(root, options), *_problems(found, block, base)],
            )
        ]

    def inner_message(self, message: Message, block: Block | None, base: int) -> list[TreeNode]:
        """Show the message inside an Envelope; Kafka nests no deeper."""
        if message.api_key == ENVELOPE:
            return [TreeNode.problem("an Envelope inside an Envelope is not decoded")]
        request = enveloped_request(self.request)
        inner = replace(
            self,
            message=replace(message, known_secrets=self.message.known_secrets),
            request=request,
            block=block or self.block,
            base=base,
            inner=True,
            body_spans=None,
        )
        return [inner.root()]

    def records(self, data: bytes, place: RecordsPlace, topic: str | None) -> list[TreeNode]:
        """Show the batches of a `records` field."""
        is_secret = is_secret_topic(topic) and not self.show_secrets
        hides = records_are_hidden()

        def annotate(
            record: AnyRecord, control: bool, place_of: Callable[[str], Place | None]
        ) -> tuple[bool, list[TreeNode]]:
            if topic is not None and is_settings_topic(topic) and not control:
                value = record.value
                hides_value = (
                    not self.show_secrets and masked_settings(record.key, value) is not value
                )
                return hides_value or hides, []
            if control:
                found: DecodedRecord | None = decode_control(record.key, record.value)
            else:
                found = decode_record(topic, record.key, record.value) if topic else None
            if found is None:
                nodes = self.decoded(topic, record, is_secret and not hides, place_of)
                return hides, nodes
            secret = hides or (not self.show_secrets and is_secret_record(topic or "", found))
            return secret, [self.kafka_record(found, place_of)]

        batches = parse_records(data, may_be_cut=self.message.kind == "response")
        return batch_nodes(
            batches, place, RecordOptions(is_secret, annotate, self.is_opened, hides)
        )

    def decoded(
        self,
        topic: str | None,
        record: AnyRecord,
        is_secret: bool,
        place_of: Callable[[str], Place | None],
    ) -> list[TreeNode]:
        """Show what the key and the value of a record say."""
        if self.read_value is None or is_secret:
            return []
        return list(decoded_nodes(self.read_value, topic, record, place_of))

    def kafka_record(
        self, record: DecodedRecord, place_of: Callable[[str], Place | None]
    ) -> TreeNode:
        """Show a record that Kafka itself wrote."""

        def load() -> list[TreeNode]:
            nodes = []
            for part in (record.key, record.value):
                if part is not None:
                    place = place_of(part.path)
                    block, base = (None, 0) if place is None else (place.block, place.start)
                    nodes += self.embedded(part, block, base)
            shown = {id(p) for part in (record.key, record.value) if part for p in part.problems}
            remaining = [problem for problem in record.problems if id(problem) not in shown]
            return nodes + [TreeNode.problem(escaped(str(each))) for each in remaining]

        return TreeNode(f"{record.name}{', a tombstone' if record.tombstone else ''}", load=load)


def _heading(name: str, root: Span, options: NodeOptions) -> TreeNode:
    """Return the node of a header or a body."""
    place = options.place(root.start, root.end)
    return TreeNode(name, place=place, load=lambda: field_nodes(root, options))


def _undeclared_value(found: Embedded) -> TreeNode:
    """Show a value without declaration: a SASL token, an address."""
    if found.value is None:
        return TreeNode(found.name)
    if "text" in found.value:
        return TreeNode(found.name, escaped(found.value["text"]))
    shown = ", ".join(f"{name} {value_text(value)}" for name, value in found.value.items())
    return TreeNode(found.name, shown)


def _problems(found: Embedded, block: Block | None, base: int) -> Sequence[TreeNode]:
    nodes = []
    for problem in found.problems:
        place, at = None, ""
        if block is not None and problem.position is not None:
            position = base + problem.position
            place, at = Place(block, position, position + 1), f" at byte {position}"
        nodes.append(
            TreeNode.problem(f"{escaped(problem.path)}{at}: {escaped(problem.what)}", place)
        )
    return nodes
