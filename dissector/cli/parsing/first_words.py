"""Words that people try as commands first, and the command that does it."""

from __future__ import annotations

from pathlib import Path

LEADS = {
    "anonymize": "export CAPTURE --redact -o OUT.pcapng",
    "capture": "dissect -i INTERFACE",
    "clients": "stats CAPTURE --clients",
    "connections": "streams CAPTURE",
    "consumers": "groups CAPTURE",
    "decode": "dissect CAPTURE -V",
    "errors": "dissect CAPTURE -Y errors",
    "filter": "dissect CAPTURE -Y FILTER",
    "follow": "dissect CAPTURE -Y 'connection == 3'",
    "lag": "groups CAPTURE",
    "latency": "stats CAPTURE",
    "messages": "records CAPTURE",
    "mock": "serve CAPTURE",
    "proxy": "record --to HOST:PORT -o OUT.pcapng",
    "redact": "export CAPTURE --redact -o OUT.pcapng",
    "summary": "findings CAPTURE",
    "top": "stats CAPTURE --talkers",
    "topics": "stats CAPTURE --topics",
    "validate": "conform CAPTURE",
}
"""Word -> how to call the command, without the program's name."""


def is_file_name(word: str) -> bool:
    """Return whether a first word can only be the name of a capture, perhaps of a missing one."""
    return word == "-" or "." in word or "/" in word or Path(word).is_file()


def lead_of(word: str) -> str:
    """Return what to add to the error about a command that does not exist; empty without a lead."""
    lead = LEADS.get(word)
    return f"; run: kafkashark {lead}" if lead else ""
