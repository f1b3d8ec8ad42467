"""JSON and text: what a value says without any schema."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from dissector.values.value_limits import MAX_DEPTH, ValueProblem

_STARTS = frozenset(bytes([each]) for each in b'{["-0123456789tfn \t\r\n')
"""First bytes of JSON."""
_WORD_STARTS = frozenset(bytes([each]) for each in b"-0123456789tfn")
"""First bytes of JSON that is one word or number."""
_WORD = re.compile(
    rb"(?:true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)[ \t\r\n]*"
)
_ENDLESS = re.compile(rb"[0-9][eE]\+?[0-9]{3}|[0-9]{200}")
"""What a number has that is read as infinity."""
_WHITE_SPACE = str.maketrans("", "", "\t\r\n")


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


_decoder = json.JSONDecoder(parse_constant=_no_number)


def _encoder() -> Callable[[Any], str]:
    """Return a writer of JSON: `json`'s own, made once instead of for each value."""
    encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return encoder.encode
    quoted = json.encoder.encode_basestring
    pieces = make(None, encoder.default, quoted, None, ": ", ", ", False, False, False)
    return lambda value: "".join(pieces(value, 0))


_encode = _encoder()


def json_value(data: bytes) -> Any:
    """
    Return the value of a JSON text.

    Raises:
        ValueProblem: It is not JSON.
    """
    try:
        value = _decoder.decode(data.decode())
    except UnicodeDecodeError as error:
        raise ValueProblem(f"not JSON: byte {error.start:,} is not UTF-8") from None
    except ValueError as error:
        most = sys.get_int_max_str_digits()
        is_long = "max_str_digits" in str(error)  # it names the function that raises the limit
        reason = f"a number of more than {most:,} digits" if is_long else f"not JSON: {error}"
        raise ValueProblem(reason) from None
    except RecursionError:
        raise ValueProblem(f"nested deeper than {MAX_DEPTH} levels") from None
    if data.count(b"[") + data.count(b"{") > MAX_DEPTH:
        check_depth(value)
    return value


def check_depth(value: Any) -> None:
    """
    Check the depth of a value.

    Raises:
        ValueProblem: It is too deep to be written.
    """
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for each in level
            for inner in (
                each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()
            )
            if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise ValueProblem(f"nested deeper than {MAX_DEPTH} levels")


def json_or_text(data: bytes) -> tuple[str, Any] | None:
    """Return the format and the value of JSON, or of a text that can be read; else None."""
    first = data[:1]
    # Much text begins like a number: the exception that says so would take longer than its reading.
    if first in _STARTS and (first not in _WORD_STARTS or _WORD.fullmatch(data)):
        try:
            return "json", json_value(data)
        except ValueProblem:
            pass
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    if text.isprintable() or text.translate(_WHITE_SPACE).isprintable():
        return "text", text
    return None


def is_finite(data: bytes) -> bool:
    """Return whether each number of a JSON text is known to be finite, so that it has a text."""
    return _ENDLESS.search(data) is None


def compact_json(value: Any) -> str:
    """Return a value in the types of JSON as one line; `safe_json` makes it safe to print."""
    return _encode(value)
