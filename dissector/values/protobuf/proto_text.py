"""
A parser of `.proto` texts, in time and memory in proportion to the text.

It reads what values need, and skips services, options and reserved numbers.

Source: https://protobuf.dev/reference/protobuf/proto3-spec/, proto2-spec/ and edition-2023-spec/
"""

from __future__ import annotations

import re

from dissector.values.protobuf.proto_declarations import (
    Extension,
    ProtoEnum,
    ProtoField,
    ProtoFile,
    ProtoMessage,
    joined,
)
from dissector.values.value_limits import MAX_SCHEMA_BYTES, MAX_SCHEMA_DEPTH, SchemaProblem

_TOKEN = re.compile(
    r"""
    (?P<space> \s+ | //[^\n]* | /\*.*?\*/ )
    | (?P<word> \.?[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)* )
    | (?P<number> \.?[0-9][0-9A-Za-z_.]*(?:(?<=[eE])[+-][0-9]+)? )
    | (?P<text> "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' )
    | (?P<sign> [{}\[\]()<>;=,:/+.-] )
    """,
    re.VERBOSE | re.DOTALL,
)
_LABELS = {"optional", "required", "repeated"}
_OPEN, _CLOSE = {"{", "[", "("}, {"}", "]", ")"}
MAX_FIELD_NUMBER = (1 << 29) - 1


def parse_proto(text: str) -> ProtoFile:
    """
    Return what a `.proto` text declares.

    Raises:
        SchemaProblem: It is too large, nests too deep, or is none.
    """
    if len(text) > MAX_SCHEMA_BYTES:
        raise SchemaProblem(f"the schema has more than {MAX_SCHEMA_BYTES:,} bytes")
    return _Parser(text).file()


def _tokens(text: str) -> list[tuple[str, int]]:
    """Return the words and signs of a text with their places."""
    tokens, at = [], 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise SchemaProblem(f"line {_line(text, at)} of the schema has {text[at]!r}")
        if found.lastgroup != "space":
            tokens.append((found[0], at))
        at = found.end()
    return tokens


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


class _Parser:
    """Reads tokens one by one; an instance is used once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._at = 0
        self._file = ProtoFile()

    def file(self) -> ProtoFile:
        """Return the whole file."""
        file = self._file
        while self._at < len(self._tokens):
            match self._next():
                case "syntax":
                    self._expect("=")
                    file.is_implicit = _unquoted(self._next()) == "proto3"
                    self._expect(";")
                case "package":
                    file.package = self._name()
                    self._expect(";")
                case "import":
                    if self._peek() in ("public", "weak", "option"):
                        self._next()
                    file.imports.append(_unquoted(self._next()))
                    self._expect(";")
                case "export" | "local" | ";":
                    continue
                case "message":
                    file.messages.append(self._message(file.package, 0))
                case "enum":
                    file.enums.append(self._enum(file.package))
                case "extend":
                    self._extend(file.package, None, 0)
                case "option":
                    self._file_option()
                case "service":
                    self._skip_statement()
                case other:
                    raise self._unexpected(other)
        return file

    def _file_option(self) -> None:
        """Skip an option; that of an edition's default presence counts."""
        name, start = self._peek(), self._at
        self._skip_statement()
        if name == "features.field_presence":
            words = {token for token, _ in self._tokens[start : self._at]}
            self._file.is_implicit = "IMPLICIT" in words

    def _message(self, scope: str, depth: int, name: str = "") -> ProtoMessage:
        """Read a message from its name on, or a group from its brace on."""
        if depth > MAX_SCHEMA_DEPTH:
            raise SchemaProblem("the schema nests too deep")
        message = ProtoMessage(joined(scope, name or self._name()))
        self._expect("{")
        while (word := self._next()) != "}":
            self._member(word, message, "", depth)
        return message

    def _member(self, word: str, message: ProtoMessage, oneof: str, depth: int) -> None:
        """Read one declaration in a message, whose first word is read."""
        # A field's type may be called like a statement: `message message = 1;` has a sign behind.
        match word:
            case ";" | "export" | "local":
                return
            case "message" if self._peek(1) == "{":
                message.messages.append(self._message(message.full_name, depth + 1))
            case "enum" if self._peek(1) == "{":
                message.enums.append(self._enum(message.full_name))
            case "extend" if self._peek(1) == "{":
                self._extend(message.full_name, message, depth)
            case "oneof" if self._peek(1) == "{":
                name = self._name()
                self._expect("{")
                while (word := self._next()) != "}":
                    if word == "option":
                        self._skip_statement()
                    else:
                        self._member(word, message, name, depth)
            case "option" | "reserved" | "extensions":
                self._skip_statement()
            case "map" if self._peek() == "<":
                message.fields.append(self._map(message))
            case _:
                field = self._field(word, message.full_name, message, depth)
                if oneof:
                    field.oneof, field.has_presence = oneof, True
                message.fields.append(field)

    def _field(self, word: str, scope: str, message: ProtoMessage | None, depth: int) -> ProtoField:
        label = word if word in _LABELS else ""
        if label:
            word = self._next()
        is_group = word == "group" and self._peek(1) == "="
        type_name = self._checked_name(word) if not is_group else ""
        name = self._name()
        self._expect("=")
        field = ProtoField(
            name,
            self._field_number(),
            type_name,
            is_repeated=label == "repeated",
            has_presence=bool(label) or not self._file.is_implicit,
            is_group=is_group,
        )
        if self._peek() == "[":
            self._field_options(field)
        if not is_group:
            self._expect(";")
            return field
        inner = self._message(scope, depth + 1, name)
        field.name, field.type_name = name.lower(), "." + inner.full_name
        (self._file if message is None else message).messages.append(inner)
        return field

    def _field_options(self, field: ProtoField) -> None:
        """Skip the options of a field; those of an edition that change its reading count."""
        start = self._at
        self._skip_brackets()
        words = [token for token, _ in self._tokens[start : self._at]]
        for name, sign, value in zip(words, words[1:], words[2:], strict=False):
            if name == "features.field_presence" and sign == "=":
                field.has_presence = value != "IMPLICIT"
            elif name == "features.message_encoding" and sign == "=":
                field.is_group = value == "DELIMITED"

    def _map(self, message: ProtoMessage) -> ProtoField:
        self._expect("<")
        key = self._name()
        self._expect(",")
        value = self._name()
        self._expect(">")
        name = self._name()
        self._expect("=")
        number = self._field_number()
        if self._peek() == "[":
            self._skip_brackets()
        self._expect(";")
        words = "".join(word[:1].upper() + word[1:] for word in name.split("_"))
        entry = ProtoMessage(f"{message.full_name}.{words}Entry", is_map_entry=True)
        entry.fields = [
            ProtoField("key", 1, key, has_presence=False),
            ProtoField("value", 2, value, has_presence=False),
        ]
        message.messages.append(entry)
        return ProtoField(name, number, "." + entry.full_name, is_repeated=True)

    def _enum(self, scope: str) -> ProtoEnum:
        enum = ProtoEnum(joined(scope, self._name()))
        self._expect("{")
        while (word := self._next()) != "}":
            if word == ";":
                continue
            if word in ("option", "reserved") and self._peek() != "=":
                self._skip_statement()
                continue
            name = self._checked_name(word)
            self._expect("=")
            sign = -1 if self._peek() == "-" else 1
            if sign < 0:
                self._next()
            number = sign * self._number()
            if self._peek() == "[":
                self._skip_brackets()
            self._expect(";")
            enum.default = enum.default if enum.names else name
            enum.names.setdefault(number, name)
        return enum

    def _extend(self, scope: str, message: ProtoMessage | None, depth: int) -> None:
        extendee = self._name()
        self._expect("{")
        while (word := self._next()) != "}":
            if word == ";":
                continue
            field = self._field(word, scope, message, depth)
            field.name = f"[{joined(scope, field.name)}]"
            field.has_presence = True
            self._file.extensions.append(Extension(extendee, scope, field))

    def _peek(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._tokens[at][0] if at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        if not token:
            raise SchemaProblem("the schema ends inside a declaration")
        self._at += 1
        return token

    def _expect(self, sign: str) -> None:
        if (token := self._next()) != sign:
            raise self._unexpected(token)

    def _name(self) -> str:
        return self._checked_name(self._next())

    def _checked_name(self, token: str) -> str:
        if not (token[0].isalpha() or token[0] in "_."):
            raise self._unexpected(token)
        return token

    def _number(self) -> int:
        token = self._next()
        try:
            is_octal = token[0] == "0" and token.isdecimal()
            number = int(token, 8 if is_octal else 0) if len(token) < 20 else -1
        except ValueError:
            number = -1
        if not 0 <= number <= 1 << 31:
            raise self._unexpected(token)
        return number

    def _field_number(self) -> int:
        number = self._number()
        if not 0 < number <= MAX_FIELD_NUMBER:
            raise self._unexpected(str(number))
        return number

    def _skip_statement(self) -> None:
        """Skip to the end of a statement: a semicolon, or a block in braces."""
        while (token := self._peek()) != ";":
            if token in _OPEN:
                self._skip_brackets()
                if token == "{":
                    return
            else:
                self._next()
        self._next()

    def _skip_brackets(self) -> None:
        """Skip a bracket, to the one that closes it."""
        depth = 0
        while True:
            token = self._next()
            depth += (token in _OPEN) - (token in _CLOSE)
            if depth == 0:
                return

    def _unexpected(self, token: str) -> SchemaProblem:
        at = self._tokens[max(self._at - 1, 0)][1]
        return SchemaProblem(f"line {_line(self._text, at)} of the schema has {token[:40]!r}")


def _unquoted(token: str) -> str:
    return token[1:-1] if token[:1] in ("'", '"') else token
