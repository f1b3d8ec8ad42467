"""
Kinds of values in a filter: how literals are parsed, and how values are compared with them.

The name on the left determines the kind of a literal: `request.acks == 0` parses a number,
`client_id == 0` a text.
"""

from __future__ import annotations

import base64
import re
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any
from uuid import UUID

from dissector.errors import suggestion
from dissector.filter.literals import Literal
from dissector.filter.records_in_fields import text_pieces
from dissector.filter.time_literals import parse_time_ns
from dissector.protocol.apis import api_keys, api_name
from dissector.protocol.error_codes import ERRORS, error_code, error_name

STATUSES = ("answered", "unanswered", "no_response", "orphan", "one_sided")

_INTEGER = re.compile(r"-?(0[xX][0-9a-fA-F]{1,32}|[0-9]{1,40})", re.ASCII)
_REAL = re.compile(r"-?([0-9]+\.[0-9]*|\.?[0-9]+)([eE][-+]?[0-9]{1,4})?", re.ASCII)
_UNNAMED_ERROR = re.compile(r"ERROR_(-?[0-9]{1,5})")
_UNNAMED_API = re.compile(r"api (-?[0-9]{1,5})")


class Kind:
    """
    A kind of value; each has one instance, below.

    Attributes:
        title: As in "api_version is a number".
        ordered: Whether `<` and the like are supported.
        searchable: Whether `contains` and `matches` are supported.
        is_number: Whether values and literals are plain numbers, compared in columns.
    """

    title = "text"
    ordered = True
    searchable = True
    is_number = False

    def parse(self, literal: Literal) -> Any:
        """
        Return the value of a literal.

        Raises:
            ValueError: The literal is not of this kind; the text states the reason.
        """
        return literal.text

    def value(self, raw: object) -> Any:
        """Return a row's value in its comparable form; None if it is not of this kind."""
        return raw if isinstance(raw, str) else None

    def equal(self, value: Any, wanted: Any) -> bool:
        """Return whether a value equals a literal's value."""
        return bool(value == wanted)

    def contains(self, value: Any, wanted: str) -> bool:
        """Return whether a value contains a text."""
        return wanted in self.text(value)

    def text(self, value: Any) -> str:
        """Return the text of a value, for regular expressions."""
        return str(value)


def _parse_number(literal: Literal) -> int | float | None:
    if literal.quoted:
        return None
    if _INTEGER.fullmatch(literal.text):
        return int(literal.text, 16 if "x" in literal.text.lower() else 10)
    return float(literal.text) if _REAL.fullmatch(literal.text) else None


class _Number(Kind):
    title = "a number"
    searchable = False
    is_number = True

    def parse(self, literal: Literal) -> Any:
        number = _parse_number(literal)
        if number is None:
            raise ValueError(f"{literal} is not a number")
        return number

    def value(self, raw: object) -> Any:
        return raw if isinstance(raw, int | float) and not isinstance(raw, bool) else None


class _Time(_Number):
    """Time since the epoch, in units of `unit_ns`; a literal is a number or a time as text."""

    title = "a time"

    def __init__(self, unit_ns: int) -> None:
        self._unit_ns = unit_ns

    def parse(self, literal: Literal) -> Any:
        number = _parse_number(literal)
        if number is not None:
            return number
        try:
            time_ns = parse_time_ns(literal.text)
        except ValueError:
            example = "2026-11-23 13:57:58.5"
            raise ValueError(f'{literal} is not a time, such as "{example}"') from None
        units, rest = divmod(time_ns, self._unit_ns)
        return time_ns / self._unit_ns if rest else units


class _ApiKey(_Number):
    """A number; the name of the API is accepted too."""

    title = "an API key"
    is_number = False

    def parse(self, literal: Literal) -> Any:
        number = _parse_number(literal)
        return api_keys()[_parse_api(literal)] if number is None else number


class _Api(Kind):
    """The name of an API, in any case."""

    title = "the name of an API"
    ordered = False

    def parse(self, literal: Literal) -> Any:
        key = _parse_number(literal)
        if isinstance(key, int) and -(2**15) <= key < 2**15:
            return api_name(key)
        return literal.text if _UNNAMED_API.fullmatch(literal.text) else _parse_api(literal)


def _parse_api(literal: Literal) -> str:
    for name in api_keys():
        if name.lower() == literal.text.lower():
            return name
    raise ValueError(f"no API is called {literal}{suggestion(literal.text, api_keys())}")


class _Status(Kind):
    title = "a status"
    ordered = False

    def parse(self, literal: Literal) -> Any:
        if literal.text not in STATUSES:
            raise ValueError(f"{literal} is not a status ({', '.join(STATUSES)})")
        return literal.text


class _Error(Kind):
    """An error code, given by number or by name; its text is its name."""

    title = "an error"

    def parse(self, literal: Literal) -> Any:
        number = _parse_number(literal)
        code = _parse_error(literal.text.upper()) if number is None else number
        if code is None:
            names = [name for name, _ in ERRORS.values()]
            raise ValueError(f"no error is called {literal}{suggestion(literal.text, names)}")
        return code

    def value(self, raw: object) -> Any:
        return _parse_error(raw) if isinstance(raw, str) else number.value(raw)

    def text(self, value: Any) -> str:
        return error_name(value)


def _parse_error(name: str) -> int | None:
    unnamed = _UNNAMED_ERROR.fullmatch(name)
    return int(unnamed[1]) if unnamed else error_code(name)


class _Boolean(Kind):
    title = "true or false"
    ordered = False
    searchable = False

    def parse(self, literal: Literal) -> Any:
        if literal.quoted or literal.text not in ("true", "false", "1", "0"):
            raise ValueError(f"{literal} is neither true nor false")
        return literal.text in ("true", "1")

    def value(self, raw: object) -> Any:
        return bool(raw) if isinstance(raw, int) else None


class _Uuid(Kind):
    """
    A uuid, in canonical text or in the 22 characters that Kafka's own tools print.

    Source: Kafka, Uuid.java (URL-safe base64 without padding).
    """

    title = "a uuid"
    ordered = False

    def parse(self, literal: Literal) -> Any:
        try:
            if len(literal.text) == 22:
                return UUID(bytes=base64.urlsafe_b64decode(literal.text + "=="))
            return UUID(literal.text)
        except ValueError:
            raise ValueError(f"{literal} is not a uuid") from None

    def value(self, raw: object) -> Any:
        return raw if isinstance(raw, UUID) else None


class _Bytes(Kind):
    """Bytes; a literal means its UTF-8 or the bytes of its hex digits."""

    title = "bytes"
    ordered = False

    def parse(self, literal: Literal) -> Any:
        return _byte_forms(literal.text)

    def value(self, raw: object) -> Any:
        return raw if isinstance(raw, bytes) else None

    def equal(self, value: Any, wanted: Any) -> bool:
        return value in wanted

    def contains(self, value: Any, wanted: str) -> bool:
        return any(each in value for each in _byte_forms(wanted))

    def text(self, value: Any) -> str:
        return str(value, "utf-8", "surrogateescape")


class _Records(_Bytes):
    """A `records` field: its bytes, and its decompressed records."""

    title = "records"

    def contains(self, value: Any, wanted: str) -> bool:
        forms = _byte_forms(wanted)
        return super().contains(value, wanted) or any(
            form in piece for piece in text_pieces(value) for form in forms
        )

    def text(self, value: Any) -> str:
        return super().text(b"\n".join(text_pieces(value)) or value)


class _Codec(Kind):
    """The name of a codec, or its number."""

    def parse(self, literal: Literal) -> Any:
        from dissector.protocol.records.compression import codec_name

        number = _parse_number(literal)
        return codec_name(number) if isinstance(number, int) and number >= 0 else literal.text


def _byte_forms(text: str) -> tuple[bytes, ...]:
    utf8 = text.encode("utf-8", "surrogatepass")
    try:
        return utf8, bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        return (utf8,)


class _Endpoint(Kind):
    """An address with its port; a literal may omit the port, or be a network (10.0.0.0/8)."""

    title = "an address"
    ordered = False

    def parse(self, literal: Literal) -> Any:
        host, port = _host_and_port(literal.text)
        try:
            return ip_network(host, strict=False), port
        except ValueError:
            raise ValueError(f"{literal} is not an address") from None

    def value(self, raw: object) -> Any:
        host, port = _host_and_port(raw) if isinstance(raw, str) else ("", None)
        try:
            return ip_address(host), port
        except ValueError:
            return None

    def equal(self, value: Any, wanted: Any) -> bool:
        network: IPv4Network | IPv6Network = wanted[0]
        return value[0] in network and wanted[1] in (None, value[1])

    def text(self, value: Any) -> str:
        address, port = value
        host = f"[{address}]" if address.version == 6 and port is not None else str(address)
        return host if port is None else f"{host}:{port}"


def _host_and_port(text: str) -> tuple[str, int | None]:
    """Split `10.0.0.1:9092` and `[fd00::1]:9092`; a bare IPv6 address has colons but no port."""
    host, colon, port = text.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    if colon and port.isdecimal() and (bare != host or ":" not in host):
        return bare, int(port[:6])
    return text.removeprefix("[").removesuffix("]"), None


class _Struct(Kind):
    title = "a struct"
    ordered = False
    searchable = False

    def parse(self, literal: Literal) -> Any:
        raise ValueError(f"{literal} can't be compared with a struct; name one of its fields")

    def value(self, raw: object) -> Any:
        return None


number, text, boolean, uuid, binary, struct = (
    _Number(),
    Kind(),
    _Boolean(),
    _Uuid(),
    _Bytes(),
    _Struct(),
)
time_ns, time_ms, records, codec = _Time(1), _Time(1_000_000), _Records(), _Codec()
api, api_key, status, error, endpoint = _Api(), _ApiKey(), _Status(), _Error(), _Endpoint()
