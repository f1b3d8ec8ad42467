"""The server for web browsers, tested without a browser."""

from __future__ import annotations

import os

import pytest

from browse.app.web_server import browse_words, parse_address
from browse.cli import LOOPBACK, BrowseOptions, browse
from dissector.cli.parsing.command_line import parse
from dissector.cli.parsing.declarations import Command
from dissector.errors import UsageError


def test_addresses() -> None:
    assert parse_address("127.0.0.1:8000") == ("127.0.0.1", 8000)
    assert parse_address("[::1]:80") == ("::1", 80)
    for text in ("8000", ":8000", "host:", "host:0", "host:99999", "host:x"):
        with pytest.raises(UsageError, match="HOST:PORT"):
            parse_address(text)


def test_the_command_of_a_browser() -> None:
    given = BrowseOptions(
        captures=["-a.pcap"],
        filter_text="api == Fetch",
        ports=(1, 2),
        web=True,
        address="127.0.0.1:1",
        jobs=1,
        show_secrets=True,
    )
    words = browse_words(given)
    assert words[0] == "browse"
    assert sorted(words[1:-2]) == sorted(
        ["--filter=api == Fetch", "--port=1", "--port=2", "--jobs=1", "--show-secrets"]
    )
    assert words[-2:] == ["--", "-a.pcap"]
    mask = os.umask(0)
    try:
        again = parse(Command.of("browse", browse), words[1:])
    finally:
        assert os.umask(mask) == 0o077  # --show-secrets
    assert vars(again) == vars(given.replace(captures=("-a.pcap",), web=False, address=LOOPBACK))
