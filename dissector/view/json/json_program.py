"""
Compiles declarations to programs that write bodies as JSON, for the kernel of `body_kernel`.

In contrast to `protocol.program`, which only reads bytes, these steps also contain the text before
each value: the text that is the same in all bodies of a version is copied.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dissector.engine.records.record_locator import RECORD_CARRIERS
from dissector.kernel.named_rows import NamedRow
from dissector.protocol.api import Kind
from dissector.protocol.apis import api
from dissector.protocol.context import per_schemas
from dissector.protocol.embedded.masking import carries_secrets
from dissector.protocol.headers import (
    API_VERSIONS,
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from dissector.protocol.program import Op
from dissector.protocol.schema import Field, Schema, construct_of, split_tagged
from dissector.view.json.json_constants import SHARED_FRAGMENTS, Fragment
from dissector.view.text.value_text import json_text


class JsonOp:
    """Operations of steps."""

    # A number; a boolean of one byte; a uuid of 16 bytes.
    NUMBER, BOOLEAN, UUID = 0, 1, 2
    # A length, then as many bytes: text; bytes, written as hex; record batches.
    TEXT, BYTES, RECORDS = 3, 4, 5
    # A count, then as many items; the end of an item.
    ARRAY, NEXT = 6, 7
    # A struct that may be null.
    NULLABLE = 8
    # Only the prefix.
    WRITE = 9
    # A tag section; then in the order of its table of tags the value of each known tag, and the
    # end of this; the end of the section.
    TAGS, TAG, TAG_END, SECTION_END = 10, 11, 12, 13
    # Header fields to skip: some bytes; a length and as many bytes.
    SKIP, SKIP_TEXT = 14, 15
    # Left to Python: always; for an ApiVersions response that refuses the request's version.
    FALL_BACK, VERSION_REFUSAL = 16, 17
    END = 18


@dataclass(slots=True)
class Step(NamedRow):
    """
    A step of a program.

    Attributes:
        op: Its operation, of `JsonOp`.
        prefix: The fragment that is written first.
        length_op: How a length or count is encoded: an operation of `program.Op`.
        size: Bytes of a number, or to skip; the fewest bytes of an item of an array.
        is_signed: Whether a number is signed.
        is_checked: Whether text and bytes are checked for signs of a credential.
        behind: The step behind an array, a struct that may be null, or a tagged value.
        default: Of a tagged value: the fragment that stands for an absent one.
        first_tag: Of a tag section: its first row in the table of tags.
        tag_count: The known tags of a section, also at its end.
        from_last: Of a tagged value: its position in the section, the last is 1.
    """

    op: int
    prefix: int = Fragment.EMPTY
    length_op: int = 0
    size: int = 0
    is_signed: bool = False
    is_checked: bool = False
    behind: int = 0
    default: int = 0
    first_tag: int = 0
    tag_count: int = 0
    from_last: int = 0


@dataclass(slots=True)
class BodyPrograms:
    """
    The programs of all bodies that were requested, in one table.

    Attributes:
        show_secrets: Whether secrets are written; otherwise bodies that may hold any are left to
            Python.
        code: The steps.
        tags: The known tags.
        texts: The fragments.
    """

    show_secrets: bool
    code: list[Step] = field(default_factory=list)
    tags: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=lambda: list(SHARED_FRAGMENTS))
    _starts: dict[tuple[int, int, Kind], int] = field(default_factory=dict)
    _fragments: dict[str, int] = field(default_factory=lambda: {"": Fragment.EMPTY})

    def start(self, key: int, version: int, kind: Kind) -> int:
        """Return the first step of a message's program; -1 if its body can't be read."""
        first_step = self._starts.get((key, version, kind))
        if first_step is None:
            first_step = self._starts[key, version, kind] = self._make(key, version, kind)
        return first_step

    def fragment(self, text: str) -> int:
        """Return the number of a fragment; a new text is added."""
        if text not in self._fragments:
            self._fragments[text] = len(self.texts)
            self.texts.append(text)
        return self._fragments[text]

    def _make(self, key: int, version: int, kind: Kind) -> int:
        known_api = api(key)
        is_request = kind == "request"
        may_refuse = key == API_VERSIONS and not is_request
        if known_api is None or (
            known_api.schema(kind).closest_version(version) is None and not may_refuse
        ):
            return -1
        schema, first_step = known_api.schema(kind), len(self.code)
        if version not in schema.versions or (
            not self.show_secrets and carries_secrets(schema.fields)
        ):
            self.code.append(Step(JsonOp.FALL_BACK))
            return first_step
        writer = _ProgramWriter(
            self, version, version in schema.flexible, (key, kind) in RECORD_CARRIERS
        )
        if is_request:
            writer.header(RequestHeader, request_header_version(key, version))
        else:
            writer.header(ResponseHeader, response_header_version(key, version))
        if may_refuse:
            writer.add(Step(JsonOp.VERSION_REFUSAL))
        writer.struct(schema.fields)
        writer.add(Step(JsonOp.END))
        return first_step


@dataclass(slots=True)
class _ProgramWriter:
    """
    Writes the steps of one message at one version.

    Attributes:
        programs: The table of steps to extend.
        version: The version.
        flexible: Whether the version is flexible.
        carries_records: Whether the message carries record batches.
        pending: Text to be written before the next step.
    """

    programs: BodyPrograms
    version: int
    flexible: bool
    carries_records: bool
    pending: str = ""

    def add(self, step: Step) -> Step:
        """Add a step, after the pending text, and return it."""
        step.prefix = self.programs.fragment(self.pending)
        self.pending = ""
        self.programs.code.append(step)
        return step

    @property
    def _here(self) -> int:
        """Number of the next step."""
        return len(self.programs.code)

    def header(self, schema: Schema, version: int) -> None:
        """Skip a header; headers with tags are left to Python."""
        for each in split_tagged(schema.fields, version)[0]:
            if each.type == "string":
                self.add(Step(JsonOp.SKIP_TEXT, length_op=Op.BYTES16))
            else:
                self.add(Step(JsonOp.SKIP, size=_SIZES[each.type]))
        if version in schema.flexible:
            self.add(Step(JsonOp.TAGS))

    def struct(self, fields: tuple[Field, ...]) -> None:
        """Write the fields of a struct, tagged ones last, in the order of Containers."""
        untagged, tagged = split_tagged(fields, self.version)
        separator = "{"
        for each in untagged:
            self.pending += f"{separator}{json_text(each.name)}: "
            separator = ", "
            self._value(each)
        if self.flexible:
            self._section(tagged, separator)
        self.pending += "}" if untagged or (self.flexible and tagged) else "{}"

    def _section(self, tagged: list[Field], separator: str) -> None:
        if not tagged:
            self.pending, pending = "", self.pending
            self.add(Step(JsonOp.TAGS))
            self.pending = pending
            return
        tags = self.programs.tags
        first = len(tags)
        tags += [each.tag or 0 for each in tagged]
        self.pending, pending = "", self.pending
        self.add(Step(JsonOp.TAGS, first_tag=first, tag_count=len(tagged)))
        self.pending = pending
        for index, each in enumerate(tagged):
            self.pending += f"{separator}{json_text(each.name)}: "
            separator = ", "
            default = self.programs.fragment(json_text(each.zero(self.version)))
            from_last = len(tagged) - index
            start = self.add(Step(JsonOp.TAG, default=default, from_last=from_last))
            if each.type == "struct" and self.version in each.null:
                self.add(Step(JsonOp.FALL_BACK))
            else:
                self._value(each)
            self.add(Step(JsonOp.TAG_END, from_last=from_last))
            start.behind = self._here
        self.add(Step(JsonOp.SECTION_END, tag_count=len(tagged)))

    def _value(self, each: Field) -> None:
        if each.type == "struct":
            if self.version not in each.null:
                self.struct(each.fields)
                return
            start = self.add(Step(JsonOp.NULLABLE))
            self.struct(each.fields)
            self.add(Step(JsonOp.WRITE))
            start.behind = self._here
        elif each.type.startswith("[]"):
            length = Op.ARRAY_COMPACT if self.flexible else Op.ARRAY32
            min_bytes = construct_of(each, self.version, self.flexible).item.min_bytes
            start = self.add(Step(JsonOp.ARRAY, length_op=length, size=min_bytes))
            if each.type == "[]struct":
                self.struct(each.fields)
            else:
                self._scalar(each.type[2:], self.flexible)
            self.add(Step(JsonOp.NEXT))
            start.behind = self._here
        else:
            self._scalar(each.type, self.flexible and not each.classic)

    def _scalar(self, type_name: str, flexible: bool) -> None:
        match type_name:
            case "string":
                self._content(JsonOp.TEXT, Op.BYTES_COMPACT if flexible else Op.BYTES16)
            case "bytes" | "records":
                is_records = type_name == "records" and self.carries_records
                op = JsonOp.RECORDS if is_records else JsonOp.BYTES
                self._content(op, Op.BYTES_COMPACT if flexible else Op.BYTES32)
            case "uuid":
                self.add(Step(JsonOp.UUID))
            case "bool":
                self.add(Step(JsonOp.BOOLEAN))
            case "float64":
                self.add(Step(JsonOp.FALL_BACK))
            case _:
                is_signed = not type_name.startswith("u")
                self.add(Step(JsonOp.NUMBER, size=_SIZES[type_name], is_signed=is_signed))

    def _content(self, op: int, length_op: int) -> None:
        self.add(Step(op, length_op=length_op, is_checked=not self.programs.show_secrets))


_SIZES = {"int8": 1, "int16": 2, "int32": 4, "int64": 8, "uint16": 2, "uint32": 4}


@per_schemas
def body_programs(show_secrets: bool) -> BodyPrograms:
    """Return the table that all captures with the same definitions share."""
    return BodyPrograms(show_secrets)
