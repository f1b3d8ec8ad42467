"""
Compiles declarations to programs that write bodies as JSON, for the kernel of `body_kernel`.

In contrast to `protocol.program`, which only reads bytes, these steps also contain the text before
each value: the text that is the same in all bodies of a version is copied.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dissector.engine.records.record_locator import RECORD_CARRIERS
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
from dissector.view.json.json_constants import EMPTY, SHARED_FRAGMENTS
from dissector.view.text.value_text import json_text

# Steps `[op, how, a, b, prefix]`: `prefix` is the fragment that is written first, `how` the
# encoding of a length.
# A number of `a` bytes, signed if `b`; a boolean of one byte; a uuid of 16 bytes.
NUMBER, BOOLEAN, UUID = 0, 1, 2
# A length, then as many bytes: text; bytes, written as hex; record batches. If `a` is set, text and
# bytes are checked for signs of a credential.
TEXT, BYTES, RECORDS = 3, 4, 5
# A count, then as many items of at least `b` bytes; `a` is the step after the last item.
ARRAY, NEXT = 6, 7
# A nullable struct; `a` is the step after it.
NULLABLE = 8
# Only the prefix.
WRITE = 9
# A tag section with `b` known tags, in the table of tags from row `a` on, then their values in that
# order: TAG has the step after the value, its position counted from the last, and as `how` the
# fragment of the default; SECTION_END ends a section of `a` tags.
TAGS, TAG, TAG_END, SECTION_END = 10, 11, 12, 13
# Header fields to skip: `a` bytes; a length and as many bytes.
SKIP, SKIP_TEXT = 14, 15
# Left to Python: always; for an ApiVersions response that refuses the request's version.
FALL_BACK, VERSION_REFUSAL = 16, 17
END = 18

Step = tuple[int, int, int, int, int]


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
    _fragments: dict[str, int] = field(default_factory=lambda: {"": EMPTY})

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
            self.code.append((FALL_BACK, 0, 0, 0, EMPTY))
            return first_step
        writer = _ProgramWriter(
            self, version, version in schema.flexible, (key, kind) in RECORD_CARRIERS
        )
        if is_request:
            writer.header(RequestHeader, request_header_version(key, version))
        else:
            writer.header(ResponseHeader, response_header_version(key, version))
        if may_refuse:
            writer.step(VERSION_REFUSAL)
        writer.struct(schema.fields)
        writer.step(END)
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

    @property
    def checks_credentials(self) -> int:
        """Whether text is checked for signs of a credential (1 or 0)."""
        return int(not self.programs.show_secrets)

    def step(self, op: int, how: int = 0, a: int = 0, b: int = 0) -> int:
        """Add a step and return its number."""
        prefix = self.programs.fragment(self.pending)
        self.pending = ""
        self.programs.code.append((op, how, a, b, prefix))
        return len(self.programs.code) - 1

    def header(self, schema: Schema, version: int) -> None:
        """Skip a header; headers with tags are left to Python."""
        for each in split_tagged(schema.fields, version)[0]:
            if each.type == "string":
                self.step(SKIP_TEXT, Op.BYTES16)
            else:
                self.step(SKIP, 0, _SIZES[each.type])
        if version in schema.flexible:
            self.step(TAGS)

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
            self.step(TAGS)
            self.pending = pending
            return
        tags = self.programs.tags
        first = len(tags)
        tags += [each.tag or 0 for each in tagged]
        self.pending, pending = "", self.pending
        self.step(TAGS, 0, first, len(tagged))
        self.pending = pending
        for index, each in enumerate(tagged):
            self.pending += f"{separator}{json_text(each.name)}: "
            separator = ", "
            default = self.programs.fragment(json_text(each.zero(self.version)))
            from_last = len(tagged) - index
            at = self.step(TAG, default, 0, from_last)
            if each.type == "struct" and self.version in each.null:
                self.step(FALL_BACK)
            else:
                self._value(each)
            self.step(TAG_END, 0, 0, from_last)
            self._set_target(at)
        self.step(SECTION_END, 0, len(tagged))

    def _value(self, each: Field) -> None:
        if each.type == "struct":
            if self.version not in each.null:
                self.struct(each.fields)
                return
            at = self.step(NULLABLE)
            self.struct(each.fields)
            self.step(WRITE)
            self._set_target(at)
        elif each.type.startswith("[]"):
            length = Op.ARRAY_COMPACT if self.flexible else Op.ARRAY32
            min_bytes = construct_of(each, self.version, self.flexible).item.min_bytes
            at = self.step(ARRAY, length, 0, min_bytes)
            if each.type == "[]struct":
                self.struct(each.fields)
            else:
                self._scalar(each.type[2:], self.flexible)
            self.step(NEXT)
            self._set_target(at)
        else:
            self._scalar(each.type, self.flexible and not each.classic)

    def _scalar(self, type_name: str, flexible: bool) -> None:
        match type_name:
            case "string":
                self.step(
                    TEXT, Op.BYTES_COMPACT if flexible else Op.BYTES16, self.checks_credentials
                )
            case "bytes" | "records":
                op = RECORDS if type_name == "records" and self.carries_records else BYTES
                self.step(op, Op.BYTES_COMPACT if flexible else Op.BYTES32, self.checks_credentials)
            case "uuid":
                self.step(UUID)
            case "bool":
                self.step(BOOLEAN)
            case "float64":
                self.step(FALL_BACK)
            case _:
                self.step(NUMBER, 0, _SIZES[type_name], int(not type_name.startswith("u")))

    def _set_target(self, at: int) -> None:
        """Set the jump target of a step to the next step."""
        code = self.programs.code
        op, how, _, b, prefix = code[at]
        code[at] = (op, how, len(code), b, prefix)


_SIZES = {"int8": 1, "int16": 2, "int32": 4, "int64": 8, "uint16": 2, "uint32": 4}


@per_schemas
def body_programs(show_secrets: bool) -> BodyPrograms:
    """Return the table that all captures with the same definitions share."""
    return BodyPrograms(show_secrets)
