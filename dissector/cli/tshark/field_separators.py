"""The layout of `dissect -T fields`: tshark's option -E."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dissector.errors import UsageError

_CHARACTERS = {"/t": "\t", "/s": " "}
_QUOTES = {"d": '"', "s": "'", "n": ""}
_CHOICES = {"header": ("y", "n"), "quote": tuple(_QUOTES), "occurrence": ("f", "l", "a")}
_TEXTS = ("separator", "aggregator")


@dataclass(frozen=True, slots=True)
class FieldLayout:
    """
    How the values of a message stand in a line.

    Attributes:
        header: Whether the first line has the names.
        separator: Stands between fields.
        aggregator: Stands between several values of a field.
        quote: Stands around each field with a value; empty for none.
        occurrence: Which values of a field are printed: `f` the first, `l` the last, `a` all.

    Source: tshark(1), option -E.
    """

    header: bool = False
    separator: str = "\t"
    aggregator: str = ","
    quote: str = ""
    occurrence: str = "a"

    @classmethod
    def of(cls, texts: Iterable[str]) -> FieldLayout:
        """
        Return the layout that options describe.

        Raises:
            UsageError: The name or the value is unknown.
        """
        given: dict[str, str] = {}
        for text in texts:
            name, _, value = text.partition("=")
            value = _CHARACTERS.get(value, value)
            allowed = _CHOICES.get(name, ())
            if value not in allowed if allowed else name not in _TEXTS or len(value) != 1:
                raise UsageError(
                    "-E takes separator=C, aggregator=C (a character, /t or /s), header=y|n, "
                    f"quote=d|s|n and occurrence=f|l|a, not {text!r}"
                )
            given[name] = value
        return cls(
            given.get("header") == "y",
            given.get("separator", "\t"),
            given.get("aggregator", ","),
            _QUOTES[given.get("quote", "n")],
            given.get("occurrence", "a"),
        )

    def line(self, fields: Iterable[Sequence[str]]) -> str:
        """Return the line of a message, by the values of its fields."""
        return self.separator.join(map(self._field, fields))

    def _field(self, values: Sequence[str]) -> str:
        if self.occurrence != "a":
            values = values[:1] if self.occurrence == "f" else values[-1:]
        text = self.aggregator.join(values)
        if not (self.quote and text):
            return text
        return f"{self.quote}{text.replace(self.quote, self.quote * 2)}{self.quote}"
