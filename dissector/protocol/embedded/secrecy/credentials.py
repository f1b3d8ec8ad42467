"""
Detect credentials inside other text: in URLs, error messages, reasons, metadata.

Source: RFC 3986 section 3.2.1 (user information of a URL), RFC 6750 and 7617 (bearer and basic
credentials), RFC 7519 (JSON web tokens); `ConfigException` of Kafka, which repeats the value in its
text.
"""

from __future__ import annotations

import re
from functools import lru_cache

from dissector.protocol.embedded.secrecy.settings import is_sensitive

_MAX_CACHED_BYTES = 1024

_CREDENTIAL = re.compile(
    rb"""
    ://[^/\s@"'<>]{1,1000}@                                    # user:password@host
    | (?<![A-Za-z])(?i:bearer)\s{1,4}(?!(?i:auth|token\b|credential|scheme))[\w.~+/=-]{6}
    | (?<![A-Za-z])(?i:basic)\s{1,4}(?=[\w+/]{0,200}[A-Z0-9=])[\w+/]{6}
    | eyJ[\w-]{6,}={0,2}\.[\w-]                                # a JSON web token
    | (?i:password|passwd|pwd|passphrase|secret|token|credentials?|signature|jaas[._]config
        |(?:api|access|account|private|secret|shared)[._-]?key)
      ["']?\s{0,4}[=:]\s{0,4}["']?[^\s"',;]
    """,
    re.VERBOSE,
)

_REJECTED_SETTING = re.compile(
    rb"nvalid\s{1,4}value\s.{0,4096}?\sfor\s{1,4}configuration\s{1,4}([\w.-]+)", re.DOTALL
)
"""Kafka's message for an invalid value of a setting; the group is the setting's name."""


def holds_credential(value: str | bytes) -> bool:
    """
    Return whether text, or bytes of unknown content, appear to contain a credential.

    `may_hold_credential` in `dissector.engine.facts.credential_kernel` finds at least these.
    """
    data = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    return _cached_search(data) if len(data) <= _MAX_CACHED_BYTES else _search(data)


@lru_cache(maxsize=4096)
def _cached_search(data: bytes) -> bool:
    return _search(data)


def _search(data: bytes) -> bool:
    if _CREDENTIAL.search(data):
        return True
    return any(
        is_sensitive(name.decode("utf-8", "replace").rstrip("."))
        for name in _REJECTED_SETTING.findall(data)
    )
