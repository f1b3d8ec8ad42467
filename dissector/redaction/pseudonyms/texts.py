"""
Pseudonyms of names and texts: as many bytes, of the same class of characters, one to one.

There are four classes, each in the next: small letters and digits with separators, valid topic
names, printable ASCII, any text. A name stays in its class, and in the first two its dots, hyphens
and underscores stay where they are: a legal name has a legal pseudonym, and no two names have the
same one. Digits alone stay digits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from string import ascii_lowercase, ascii_uppercase, digits

from dissector.redaction.pseudonyms.permutation import Permutation

_CLASSES = (
    ascii_lowercase + digits + ".-",
    ascii_lowercase + digits + ascii_uppercase + "._-",
    "".join(map(chr, range(32, 127))),
)
"""Characters of the classes, but for the last."""

_SEPARATORS = frozenset("._-")
_LETTERS = (ascii_lowercase + digits, ascii_lowercase + digits + ascii_uppercase)
"""The replacements of letters and digits in the first two classes."""

_LONGEST = 256
"""Characters of longer texts are replaced as a whole."""


def text_pseudonym(permutation: Permutation, text: str, is_taken: Callable[[str], bool]) -> str:
    """
    Return the pseudonym of a text.

    Args:
        permutation: Keyed.
        text: The text; surrogates represent bytes that are not UTF-8.
        is_taken: Returns whether a text is not a pseudonym, because it stays or has one of its own
            kind; false for `text`.
    """
    if len(text) > _LONGEST:
        return _long_pseudonym(permutation, text)
    number = class_of(text)
    is_number = _is_number(text)
    bound = 1
    for each in text:
        bound *= len(_letters(each, number, is_number))

    def decode(value: int) -> str:
        return _from_number(value, text, number, is_number)

    def is_legal(value: int) -> bool:
        found = decode(value)
        is_like = class_of(found) == number and _is_number(found) == is_number
        return is_like and not is_taken(found)

    if bound == 1:
        return text
    value = _to_number(text, number, is_number)
    label = f"text {number} {is_number} {_shape(text, number)}"
    return decode(permutation.permute(label, value, bound, is_legal))


def class_of(text: str) -> int:
    """Return the narrowest class with all characters of a text."""
    letters = set(text)
    return next((n for n, each in enumerate(_SETS) if letters <= each), len(_CLASSES))


_SETS = tuple(frozenset(each) for each in _CLASSES)


def _long_pseudonym(permutation: Permutation, text: str) -> str:
    """Return letters that depend on the whole text: it is too long for two to be the same."""
    size = len(text.encode("utf-8", "surrogateescape"))
    letters = _CLASSES[0]
    data = permutation.digest("long text", text.encode("utf-8", "surrogateescape"), size)
    return "".join(letters[byte % len(letters)] for byte in data)


def _is_number(text: str) -> bool:
    """Return whether a text consists of digits and separators."""
    return not set(text) - _SEPARATORS - set(digits)


@cache
def _letters(letter: str, number: int, is_number: bool) -> Sequence[str]:
    """Return the letters that may replace one: of its class, or of its number of bytes."""
    if number < len(_LETTERS):
        if letter in _SEPARATORS:
            return letter
        return digits if is_number else _LETTERS[number]
    if number < len(_CLASSES):
        return _CLASSES[number]
    code = ord(letter)
    if code < 0x80:
        printable = 32 <= code < 127
        return _CLASSES[2] if printable else [*map(chr, range(32)), chr(127)]
    if code < 0x800:
        return _RANGES[0]
    if 0xDC80 <= code <= 0xDCFF:
        return _RANGES[1]
    return _RANGES[2] if code < 0x10000 else _RANGES[3]


class _Characters(Sequence[str]):
    """The characters of a range of code points, without the surrogates."""

    def __init__(self, low: int, high: int) -> None:
        self._low = low
        self._count = high - low - (0x800 if low < 0xD800 and high > 0xE000 else 0)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> str:  # type: ignore[override]
        code = self._low + index
        return chr(code + 0x800 if self._low < 0xD800 <= code else code)

    def index(self, letter: str, start: int = 0, stop: int | None = None) -> int:
        """Return the index of a character."""
        code = ord(letter)
        return code - self._low - (0x800 if self._low < 0xD800 and code >= 0xE000 else 0)


_RANGES = (
    _Characters(0x80, 0x800),
    _Characters(0xDC80, 0xDD00),
    _Characters(0x800, 0x10000),
    _Characters(0x10000, 0x110000),
)


def _shape(text: str, number: int) -> str:
    """Return the common traits of a text and its pseudonym: separators, or kinds of characters."""
    if number < len(_LETTERS):
        return "".join(each if each in _SEPARATORS else "x" for each in text)
    return "".join(str(_kind(ord(each))) for each in text) if number == 3 else str(len(text))


def _kind(code: int) -> int:
    if code < 0x80:
        return 0 if 32 <= code < 127 else 1
    if 0xDC80 <= code <= 0xDCFF:
        return 2
    return 3 if code < 0x800 else 4 if code < 0x10000 else 5


def _to_number(text: str, number: int, is_number: bool) -> int:
    value = 0
    for each in text:
        letters = _letters(each, number, is_number)
        value = value * len(letters) + letters.index(each)
    return value


def _from_number(value: int, text: str, number: int, is_number: bool) -> str:
    found = []
    for each in reversed(text):
        letters = _letters(each, number, is_number)
        value, index = divmod(value, len(letters))
        found.append(letters[index])
    return "".join(reversed(found))
