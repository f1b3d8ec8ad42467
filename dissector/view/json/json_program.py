"""
A declaration as a program that writes bodies as JSON: steps for the loop of `body_loop`.

Beside `protocol.program`, whose steps say how bytes are read, these say what is written before each
value too: all that is the same in every body of a version is text that is only copied.
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
from dissector.protocol.program import (
    ARRAY32,
    ARRAY_COMPACT,
    BYTES16,
    BYTES32,
    BYTES_COMPACT,
)
from dissector.protocol.schema import Field, Schema, construct_of, split_tagged
from dissector.view.json.json_constants import EMPTY, SHARED_FRAGMENTS
from dissector.view.text.value_text import json_text

# Steps `[op, how, a, b, before]`: `before` is the fragment that is written first, `how` the form of
# a length.
# A number of `a` bytes, signed if `b`; one byte that is a boolean; 16 that are a uuid.
NUMBER, BOOLEAN, UUID = 0, 1, 2
# A length, and so many bytes: text; bytes, written as hex; record batches. With `a` text and bytes
# are looked at for signs of a credential.
TEXT, BYTES, RECORDS = 3, 4, 5
# A count, and so many items of at least `b` bytes; `a` is the step behind the last.
ARRAY, NEXT = 6, 7
# A struct that may be null; `a` is the step behind it.
NULLABLE = 8
# Nothing but what is written before.
WRITE = 9
# A tag section of `b` known tags, in rows from `a` on of the table of tags; behind it their values
# in that order: TAG has the step behind the value, its place from the last one on, and as `how` the
# fragment of the default; SECTION_END ends the section of `a` tags.
TAGS, TAG, TAG_END, SECTION_END = 10, 11, 12, 13
# Bytes of the header: `a`; a length and so many.
SKIP, SKIP_TEXT = 14, 15
# Left to Python: always; where it is the answer to an ApiVersions request of an unknown version.
FALL_BACK, VERSION_REFUSAL = 16, 17
END = 18

Step = tuple[int, int, int, int, int]


@dataclass(slots=True)
class BodyPrograms:
    """
    The programs of all bodies that were asked for, in one table.

    Attributes:
        show_secrets: Whether secrets are written; else bodies that may hold some are left.
        code: The steps.
        tags: Numbers of known tags.
        texts: The fragments.
    """

    show_secrets: bool
    code: list[Step] = field(default_factory=list)
    tags: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=lambda: list(SHARED_FRAGMENTS))
    _starts: dict[tuple[int, int, Kind], int] = field(default_factory=dict)
    _fragments: dict[str, int] = field(default_factory=lambda: {"": EMPTY})

    def start(self, key: int, version: int, kind: Kind) -> int:
        """Return the first step of a message; -1 where it has no body that could be read."""
        known = self._starts.get((key, version, kind))
        if known is None:
            known = self._starts[key, version, kind] = self._make(key, version, kind)
        return known

    def fragment(self, text: str) -> int:
        """Return the number of a text."""
        if text not in self._fragments:
            self._fragments[text] = len(self.texts)
            self.texts.append(text)
        return self._fragments[text]

    def _make(self, key: int, version: int, kind: Kind) -> int:
        found = api(key)
        is_request = kind == "request"
        refusal = key == API_VERSIONS and not is_request
        if found is None or (found.schema(kind).closest_version(version) is None and not refusal):
            return -1
        schema, start = found.schema(kind), len(self.code)
        if version not in schema.versions or (
            not self.show_secrets and carries_secrets(schema.fields)
        ):
            self.code.append((FALL_BACK, 0, 0, 0, EMPTY))
            return start
        writer = _ProgramWriter(
            self, version, version in schema.flexible, (key, kind) in RECORD_CARRIERS
        )
        if is_request:
            writer.header(RequestHeader, request_header_version(key, version))
        else:
            writer.header(ResponseHeader, response_header_version(key, version))
        if refusal:
            writer.step(VERSION_REFUSAL)
        writer.struct(schema.fields)
        writer.step(END)
        return start


@dataclass(slots=True)
class _ProgramWriter:
    """
    Writes the steps of one message at one version.

    Attributes:
        programs: The table that they go to.
        version: The version.
        flexible: Whether it is flexible.
        carries_records: Whether it carries record batches.
        pending: Text that is written before the next step.
    """

    programs: BodyPrograms
    version: int
    flexible: bool
    carries_records: bool
    pending: str = ""

    @property
    def checks_credentials(self) -> int:
        """Whether text is looked at for signs of a credential."""
        return int(not self.programs.show_secrets)

    def step(self, op: int, how: int = 0, a: int = 0, b: int = 0) -> int:
        """Add a step and return its number."""
        before = self.programs.fragment(self.pending)
        self.pending = ""
        self.programs.code.append((op, how, a, b, before))
        return len(self.programs.code) - 1

    def header(self, schema: Schema, version: int) -> None:
        """Pass over a header; one with tags is left to Python."""
        for each in split_tagged(schema.fields, version)[0]:
            if each.type == "string":
                self.step(SKIP_TEXT, BYTES16)
            else:
                self.step(SKIP, 0, _SIZES[each.type])
        if version in schema.flexible:
            self.step(TAGS)

    def struct(self, fields: tuple[Field, ...]) -> None:
        """Write the fields of a struct, the tagged ones last, as Containers have them."""
        plain, tagged = split_tagged(fields, self.version)
        between = "{"
        for each in plain:
            self.pending += f"{between}{json_text(each.name)}: "
            between = ", "
            self._value(each)
        if self.flexible:
            self._section(tagged, between)
        self.pending += "}" if plain or (self.flexible and tagged) else "{}"

    def _section(self, tagged: list[Field], between: str) -> None:
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
        for place, each in enumerate(tagged):
            self.pending += f"{between}{json_text(each.name)}: "
            between = ", "
            default = self.programs.fragment(json_text(each.zero(self.version)))
            from_last = len(tagged) - place
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
            length = ARRAY_COMPACT if self.flexible else ARRAY32
            least = construct_of(each, self.version, self.flexible).item.min_bytes
            at = self.step(ARRAY, length, 0, least)
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
                self.step(TEXT, BYTES_COMPACT if flexible else BYTES16, self.checks_credentials)
            case "bytes" | "records":
                op = RECORDS if type_name == "records" and self.carries_records else BYTES
                self.step(op, BYTES_COMPACT if flexible else BYTES32, self.checks_credentials)
            case "uuid":
                self.step(UUID)
            case "bool":
                self.step(BOOLEAN)
            case "float64":
                self.step(FALL_BACK)
            case _:
                self.step(NUMBER, 0, _SIZES[type_name], int(not type_name.startswith("u")))

    def _set_target(self, at: int) -> None:
        """Let a step lead on to the one that comes next."""
        code = self.programs.code
        op, how, _, b, before = code[at]
        code[at] = (op, how, len(code), b, before)


_SIZES = {"int8": 1, "int16": 2, "int32": 4, "int64": 8, "uint16": 2, "uint32": 4}


@per_schemas
def body_programs(show_secrets: bool) -> BodyPrograms:
    """Return the table that all readings with the same definitions share."""
    return BodyPrograms(show_secrets)
