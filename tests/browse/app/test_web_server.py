"""The server for web browsers, tested without a browser."""

from __future__ import annotations

import pytest

from browse.app.web_server import browse_words, parse_address
from dissector.errors import UsageError


def test_addresses() -> None:
    assert parse_address("127.0.0.1:8000") == ("127.0.0.1", 8000)
    assert parse_address("[::1]:80") == ("::1", 80)
    for text in ("8000", ":8000", "host:", "host:0", "host:99999", "host:x"):
        with pytest.raises(UsageError, match="HOST:PORT"):
            parse_address(text)


def test_the_command_of_a_browser() -> None:
    given = {
        "--filter": "api == Fetch",
        "--port": [1, 2],
        "--follow": False,
        "--show-secrets": True,
    }
    assert browse_words(["-a.pcap"], {**given, "--jobs": None}) == [
        *("browse", "--filter=api == Fetch", "--port=1", "--port=2", "--show-secrets"),
        *("--", "-a.pcap"),
    ]
