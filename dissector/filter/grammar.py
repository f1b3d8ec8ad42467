"""
Parses the text of a filter into a tree, with all checks that need no row.

    filter     = all { ("or" | "||") all }
    all        = one { ("and" | "&&") one }
    one        = { "not" | "!" } ( "(" filter ")" | test )
    test       = plain | ( "any" | "all" ) ( plain | "(" plain ")" )
    plain      = operand [ op value | "in" "{" item { [","] item } "}"
                      | "contains" value | ( "matches" | "~" ) value ]
    operand    = name [ "[" slice "]" ] | ( "len" | "lower" | "upper" | "count" ) "(" operand ")"
    op         = "==" "!=" "===" "!==" "<" "<=" ">" ">="
               | eq ne all_eq any_ne lt le gt ge
    item       = value [ ".." value ]
    value      = a text in double or single quotes, or a bare word: Produce, -1, 0x1f, true, null
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dissector.errors import FilterError
from dissector.filter.functions import FUNCTIONS, with_function, with_slice
from dissector.filter.literals import Literal, compile_pattern
from dissector.filter.names import resolve
from dissector.filter.nodes import (
    Always,
    And,
    Compare,
    Contains,
    Exists,
    Leaf,
    Matches,
    Node,
    Not,
    OneOf,
    Or,
    Range,
    Test,
)
from dissector.filter.operands import Name, UnknownName

MAX_LENGTH = 100_000
"""Maximum length of a filter in characters."""
MAX_DEPTH = 50
"""Maximum nesting of parentheses and `not`."""

_ORDERING = ("<", "<=", ">", ">=")
_COMPARING = ("==", "!=", "===", "!==", *_ORDERING)
_OPERATOR_WORDS = {
    **dict(zip(("eq", "ne", "all_eq", "any_ne", "lt", "le", "gt", "ge"), _COMPARING, strict=True)),
    "and": "&&",
    "or": "||",
    "not": "!",
    "in": "in",
    "contains": "contains",
    "matches": "matches",
}

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<word>(?:[\w/:+@\[\]-]|\.(?!\.))+)
    | (?P<sign>===|!==|==|!=|<=|>=|<|>|&&|\|\||!|~|\(|\)|\{|\}|,|\.\.)
    | (?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL,
)
_SLICED = re.compile(r"(?P<name>[A-Za-z][^\[\]]*)\[(?P<slice>[^\[\]]*)\]")
_QUANTIFIERS = ("any", "all")
_ALWAYS = ("kafka", "tcp", "ip", "frame")
_ESCAPE = re.compile(r"""\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|([nrt"'\\]))""")
_ESCAPED_CHARACTERS = {"n": "\n", "r": "\r", "t": "\t"}


@dataclass(frozen=True, slots=True)
class _Token:
    """A token; `kind` is `text`, `word`, `sign` (including operators that are words) or `end`."""

    kind: str
    text: str
    at: int
    source: str


def _unescape(inner: str) -> str:
    r"""Resolve escapes; unknown ones stay unchanged, so that `"\d+"` can be written."""
    return _ESCAPE.sub(
        lambda m: (
            chr(int(m[1] or m[2], 16)) if m[1] or m[2] else _ESCAPED_CHARACTERS.get(m[3], m[3])
        ),
        inner,
    )


def parse_operand(text: str, *, records: bool = False) -> Name:
    """
    Parse a name, a slice or a function of it.

    Raises:
        FilterError: A syntax error or an unknown name; with the position.
    """
    return _Parser(text, records).parse_whole_operand()


def _quantified(quantifier: str, name: Name, test: Test) -> Leaf:
    """Return a test of any value, or of all values."""
    any_forms, all_forms = {"!=": "!==", "===": "=="}, {"==": "===", "!==": "!="}
    forms = any_forms if quantifier == "any" else all_forms
    if isinstance(test, Compare) and test.op not in _ORDERING:
        return Leaf(name, Compare(forms.get(test.op, test.op), test.literal))
    return Leaf(name, test, every=quantifier == "all")


def parse_node(text: str, *, records: bool = False) -> Node:
    """
    Parse a filter; `records`: rows are records.

    Raises:
        FilterError: A syntax error or an unknown name; with the position.
    """
    return _Parser(text, records).parse_filter()


class _Parser:
    """Recursive descent over the tokens; its depth stays far below Python's recursion limit."""

    def __init__(self, text: str, records: bool) -> None:
        self.text = text
        self.records = records
        self.depth = 0
        if len(text) > MAX_LENGTH:
            raise self.error_at(f"the filter has more than {MAX_LENGTH:,} characters", MAX_LENGTH)
        self.tokens = self.tokenize()
        self.index = 0

    def error_at(self, message: str, at: int) -> FilterError:
        """Return an error; control characters of the filter are replaced by spaces."""
        one_line = "".join(c if c.isprintable() else " " for c in self.text)
        # The message need not keep the columns of the filter, so it shows the escaped character.
        quoted = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in message)
        return FilterError(one_line, quoted, at)

    def tokenize(self) -> list[_Token]:
        tokens: list[_Token] = []
        at = 0
        while not tokens or tokens[-1].kind != "end":
            found = _TOKEN.match(self.text, at)
            if found is None:
                raise self.token_error(at)
            kind = str(found.lastgroup)
            shown = found[kind]
            word = _OPERATOR_WORDS.get(shown.lower()) if kind == "word" else None
            if word is not None:
                kind, content = "sign", word
            else:
                content = _unescape(shown[1:-1]) if kind == "text" else shown
            tokens.append(_Token(kind, content, found.end() - len(shown), shown))
            at = found.end()
        return tokens

    def token_error(self, at: int) -> FilterError:
        at += len(self.text[at:]) - len(self.text[at:].lstrip())
        match self.text[at]:
            case '"' | "'":
                return self.error_at("the quote is not closed", at)
            case "=":
                return self.error_at("'=' is not an operator; write ==", at)
            case character:
                return self.error_at(
                    f"unexpected character {character!r}; a text with it needs quotes", at
                )

    @property
    def current(self) -> _Token:
        return self.tokens[self.index]

    def accept(self, *signs: str) -> _Token | None:
        """Consume the next token if it is one of these signs."""
        token = self.current
        if token.kind != "sign" or token.text not in signs:
            return None
        self.index += 1
        return token

    def expect(self, sign: str) -> None:
        if not self.accept(sign):
            raise self.error_at(f"{sign!r} is missing", self.current.at)

    def parse_filter(self) -> Node:
        if self.current.kind == "end":
            raise self.error_at("the filter is empty", 0)
        node = self.parse_or()
        if self.current.kind == "end":
            return node
        if self.current.text == ")":
            raise self.error_at("unmatched ')'", self.current.at)
        raise self.error_at(
            f"'and' or 'or' is missing before {self.current.source[:60]}", self.current.at
        )

    def parse_or(self) -> Node:
        parts = [self.parse_and()]
        while self.accept("||"):
            parts.append(self.parse_and())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def parse_and(self) -> Node:
        parts = [self.parse_not()]
        while self.accept("&&"):
            parts.append(self.parse_not())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def parse_not(self) -> Node:
        nots = 0
        while sign := self.accept("!"):
            nots += 1
            self.descend(sign)
        if sign := self.accept("("):
            self.descend(sign)
            node = self.parse_or()
            self.expect(")")
            self.depth -= 1
        else:
            node = self.parse_leaf()
        self.depth -= nots
        for _ in range(nots):
            node = Not(node)
        return node

    def descend(self, sign: _Token) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.error_at(f"more than {MAX_DEPTH} levels of parentheses and 'not'", sign.at)

    def parse_leaf(self) -> Node:
        token = self.current
        if token.kind == "word" and token.text in _ALWAYS:
            self.index += 1
            return Always()
        quantifier = ""
        after = self.tokens[min(self.index + 1, len(self.tokens) - 1)]
        if token.text.lower() in _QUANTIFIERS and (after.kind == "word" or after.text == "("):
            quantifier = token.text.lower()
            self.index += 1
        is_inside = bool(quantifier and self.accept("("))
        name = self.parse_operand()
        test = self.parse_test(name)
        if is_inside:
            self.expect(")")
        if not quantifier:
            return Leaf(name, test)
        if isinstance(test, Exists):
            raise self.error_at(
                f"a comparison is missing after {quantifier!r} and a name", token.at
            )
        return _quantified(quantifier, name, test)

    def parse_operand(self) -> Name:
        """Consume a name, a slice of it, or a function."""
        token = self.current
        if token.kind != "word":
            found = "the end of the filter" if token.kind == "end" else token.source[:60]
            raise self.error_at(f"expected a name, found {found}", token.at)
        self.index += 1
        try:
            if self.current.text == "(" and self.current.kind == "sign":
                if token.text.lower() not in FUNCTIONS:
                    raise ValueError(f"no function is called {token.text[:60]!r}")
                self.descend(self.current)
                self.index += 1
                inner = self.parse_operand()
                self.expect(")")
                self.depth -= 1
                result = with_function(inner, token.text.lower())
                if self.current.kind == "word" and self.current.text.startswith("["):
                    self.index += 1
                    return with_slice(result, self.tokens[self.index - 1].text.strip("[]"))
                return result
            sliced = _SLICED.fullmatch(token.text)
            name = resolve(sliced["name"] if sliced else token.text, records=self.records)
            return with_slice(name, sliced["slice"]) if sliced else name
        except UnknownName as error:
            raise self.error_at(str(error), token.at + error.offset) from None
        except ValueError as error:
            raise self.error_at(str(error), token.at) from None

    def parse_whole_operand(self) -> Name:
        """Consume an operand that is the whole text."""
        name = self.parse_operand()
        if self.current.kind != "end":
            raise self.error_at(
                f"expected the end, found {self.current.source[:60]}", self.current.at
            )
        return name

    def parse_test(self, name: Name) -> Test:
        if sign := self.accept("contains", "matches", "~"):
            if not any(kind.searchable for kind in name.kinds):
                raise self.error_at(f"{name} is {name.kinds[0].title}, not text", sign.at)
            if sign.text == "contains":
                return Contains(self.parse_literal())
            return Matches(self.parse_pattern())
        if self.accept("in"):
            return self.parse_set(name)
        if sign := self.accept(*_COMPARING):
            ordering = sign.text in _ORDERING
            if ordering:
                self.check_order(name, sign)
            return Compare(sign.text, self.parse_value(name, null=not ordering))
        return Compare("==", Literal("true")) if name.is_flag else Exists()

    def check_order(self, name: Name, sign: _Token) -> None:
        if not any(kind.ordered for kind in name.kinds):
            raise self.error_at(f"{name} is {name.kinds[0].title} and has no order", sign.at)

    def parse_set(self, name: Name) -> OneOf:
        self.expect("{")
        items: list[Literal | Range] = []
        while not items or not self.accept("}"):
            if items:
                self.accept(",")
            low = self.parse_value(name, null=True)
            if sign := self.accept(".."):
                self.check_order(name, sign)
                items.append(Range(low, self.parse_value(name, null=False)))
            else:
                items.append(low)
        return OneOf(tuple(items))

    def parse_literal(self) -> Literal:
        token = self.current
        if token.kind not in ("text", "word"):
            found = "the end of the filter" if token.kind == "end" else token.source[:60]
            raise self.error_at(f"expected a value, found {found}", token.at)
        self.index += 1
        return Literal(token.text, token.kind == "text")

    def parse_value(self, name: Name, *, null: bool) -> Literal:
        """Consume a literal that the name can be compared with."""
        at = self.current.at
        literal = self.parse_literal()
        if literal.is_null:
            if not null:
                raise self.error_at("null has no order", at)
            return literal
        reason = ""
        for kind in name.kinds:
            try:
                kind.parse(literal)
            except ValueError as error:
                reason = reason or f"{name}: {error}"
            else:
                return literal
        raise self.error_at(reason, at)

    def parse_pattern(self) -> Literal:
        at = self.current.at
        literal = self.parse_literal()
        try:
            compile_pattern(literal.text)
        except ValueError as error:
            raise self.error_at(str(error), at) from None
        return literal
