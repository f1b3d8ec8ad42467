"""
Detect credentials inside other text: in URLs, error messages, reasons, metadata, settings.

The text may be JSON, XML, YAML, a command line or the query of a URL; escapes are undone, however
often a text was escaped. The time is linear in the text: each repetition has a limit.

Source: RFC 3986 section 3.2.1 (user information of a URL) and 2.1 (percent-encoding), RFC 6750 and
7617 (bearer and basic credentials), RFC 7519 (JSON web tokens), RFC 7468 (private keys as text);
https://learn.microsoft.com/rest/api/storageservices/create-service-sas (`sig`);
`ConfigException` of Kafka, which repeats the value in its text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

from dissector.protocol.embedded.secrecy.settings import is_sensitive
from dissector.protocol.login_secrets import (
    NOTHING_KNOWN,
    Known,
    knowing,
    repeats_login_secret,
)

MASK = "***"
"""Replaces a secret."""

_MAX_CACHED_BYTES = 1024

_SIGN = re.compile(rb"""[\x00-\x20"'%&,:<=>@\\]|eyJ""")
"""Text without any of these has no credential. `may_hold_credential` looks for the same."""

_CASED = re.compile(
    rb"""
    eyJ[\w-]{6,1000}={0,2}\.[\w-]                              # a JSON web token
    | (?<![A-Za-z])[Bb](?:asic|ASIC)\s{1,4}(?=[\w+/]{0,200}[A-Z0-9=])[\w+/]{6}
    """,
    re.VERBOSE,
)

_WORD = rb"""(?:
    pass(?:word|wd|phrase)|(?<![a-z])pass|pwd|secret|token|credentials?|signature
    |jaas[._]config|user[._-]?info
    |(?:api|access|account|private|secret|shared|encryption|session)[._-]?key
)"""
"""A word for a secret. Names of settings, elements and options end with it."""

_LOWERED = rb"""
    ://[^/\s@"'<>]{1,1000}@                                    # user:password@host
    | (?<![a-z])bearer\s{1,4}(?!auth|token\b|credential|scheme)[\w.~+/=-]{6}
    | -----begin\s[a-z0-9\s]{0,40}private\skey
    | (?<!\w)sig=[\w%+/=-]{6}                                  # a shared access signature
    | (?<![\w-])-(?:u|-user)["']?[\s=,]{1,4}["']?[^\s:"']{1,100}:[^\s"']
    | --[\w-]{0,32}?WORD["']?(?:\s{1,4}|\s{0,4},\s{0,4})["']?[^\s"'-]
    | <(?:[\w.-]{1,64}:)?[\w.-]{0,64}?WORD[\w.-]{0,32}(?:\s[^<>]{0,200})?>\s{0,16}[^\s<]
    | WORD(?:
        # `password = x`, `"password": "x"`, `"name": "password", "value": "x"`
        ["'\s]{0,16}+(?:,?["'\s]{0,16}+value["'\s]{0,16}+)?[=:]["'\s]{0,16}+[^\s"',;]
        # <entry key="password">x
        | ["']>\s{0,16}+[^\s<]
      )
    """

_REJECTED_SETTING = re.compile(
    rb"nvalid\s{1,4}value\s.{0,4096}?\sfor\s{1,4}configuration\s{1,4}([\w.-]+)", re.DOTALL
)
"""Kafka's message for an invalid value of a setting; the group is the setting's name."""

_PERCENT_ESCAPE = re.compile(rb"%(?:25)*([0-9A-Fa-f]{2})")
_UNICODE_ESCAPE = re.compile(rb"(?<!\\)\\++u00([0-9A-Fa-f]{2})")
_ENTITY = re.compile(rb"&(?:amp;)*(?:(quot|apos|lt|gt|equals|colon)|\#([0-9]{2,3}));")
_ENTITIES: dict[bytes, bytes] = {
    b"quot": b'"',
    b"apos": b"'",
    b"lt": b"<",
    b"gt": b">",
    b"equals": b"=",
    b"colon": b":",
}


@cache
def _lowered() -> re.Pattern[bytes]:
    """Return the forms of credentials in lower case; compiled when the first text needs it."""
    return re.compile(_LOWERED.replace(b"WORD", _WORD), re.VERBOSE)


def holds_credential(value: str | bytes) -> bool:
    """
    Return whether text, or bytes of unknown content, appear to contain a credential.

    So do secrets of the connection's login, within `login_secrets.knowing`.
    """
    data = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    is_short = len(data) <= _MAX_CACHED_BYTES
    return (_cached_search(data) if is_short else _search(data)) or repeats_login_secret(data)


def mask_texts(value: Any, known: Known = NOTHING_KNOWN) -> Any:
    """
    Return a value with each text that holds a credential replaced by `MASK`.

    Args:
        value: A text, or lists and mappings with texts at any depth.
        known: Secrets that a login showed.
    """
    with knowing(known):
        return _mask_texts(value)


def _mask_texts(value: Any) -> Any:
    match value:
        case str():
            return MASK if holds_credential(value) else value
        case list() | tuple():
            items = [_mask_texts(each) for each in value]
            same = all(new is old for new, old in zip(items, value, strict=True))
            return value if same else items if isinstance(value, list) else tuple(items)
        case Mapping():
            return {name: _mask_texts(each) for name, each in value.items()}
        case _:
            return value


@lru_cache(maxsize=4096)
def _cached_search(data: bytes) -> bool:
    return _search(data)


def _search(data: bytes) -> bool:
    if _SIGN.search(data) is None:
        return False
    if _is_credential(data):
        return True
    plain = _unescaped(data)
    return plain != data and _is_credential(plain)


def _is_credential(data: bytes) -> bool:
    if _CASED.search(data) or _lowered().search(data.lower()):
        return True
    return any(
        is_sensitive(name.decode("utf-8", "replace").rstrip("."))
        for name in _REJECTED_SETTING.findall(data)
    )


def _unescaped(data: bytes) -> bytes:
    """Return text without escapes of URLs, JSON and XML, also repeated ones."""
    if b"%" in data:
        data = _PERCENT_ESCAPE.sub(_character, data)
    if b"\\" in data:
        data = _UNICODE_ESCAPE.sub(_character, data).replace(b"\\", b"")
    if b"&" in data:
        data = _ENTITY.sub(_entity, data)
    return data


def _character(escape: re.Match[bytes]) -> bytes:
    return bytes([int(escape[1], 16)])


def _entity(escape: re.Match[bytes]) -> bytes:
    return _ENTITIES[escape[1]] if escape[1] else bytes([int(escape[2]) & 0xFF])
