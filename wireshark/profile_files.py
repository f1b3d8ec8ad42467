"""
A profile of Wireshark: columns, rules of colours, and which ports are Kafka.

Source: https://www.wireshark.org/docs/wsug_html_chunked/ChAppFilesConfigurationSection.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from wireshark.kafka_ports import KafkaPorts

PROFILE = "kafkashark"
"""The name of the profile."""

_COLUMNS = (
    ("No.", "%m"),
    ("Time", "%t"),
    ("Source", "%s"),
    ("Destination", "%d"),
    ("API", "%Cus:kafka.api_key:0:R"),
    ("Version", "%Cus:kafka.api_version:0:R"),
    ("Id", "%Cus:kafka.correlation_id:0:R"),
    ("Client", "%Cus:kafka.client_id:0:R"),
    ("Topic", "%Cus:kafka.topic_name:0:R"),
    ("Error", "%Cus:kafka.error:0:R"),
    ("Comment", "%Cus:frame.comment:0:R"),
    ("Info", "%i"),
)
"""Headings, and Wireshark's formats."""


class _Rule(NamedTuple):
    """A rule of colours: its name, its filter, and both colours in hexadecimal."""

    name: str
    filter: str
    background: str
    text: str


_RULES = (
    _Rule("breaks", 'frame.comment contains "kafkashark breaks"', "f4b6b6", "4a0d0d"),
    _Rule("costs", 'frame.comment contains "kafkashark costs"', "f8d3a6", "46280a"),
    _Rule("differs", 'frame.comment contains "kafkashark differs"', "f3ecab", "3c3705"),
    _Rule("informs", 'frame.comment contains "kafkashark informs"', "c5def5", "0c2c4a"),
    _Rule("event", 'frame.comment contains "kafkashark"', "c9ecd4", "0b3a1c"),
    _Rule("loss", "tcp.analysis.flags && !tcp.analysis.window_update", "2b2b33", "ff9b9b"),
    _Rule("reset", "tcp.flags.reset == 1", "5c1a1a", "ffe9a8"),
    _Rule("Kafka", "kafka", "e9e6fa", "1c1b2e"),
    _Rule("TLS", "tls", "e6e6ea", "26262b"),
    _Rule("begin and end", "tcp.flags.syn == 1 || tcp.flags.fin == 1", "c4c4c8", "1b1b1e"),
)
"""The first rule that holds colours a packet."""


def profile_files(ports: KafkaPorts) -> Mapping[str, str]:
    """Return the files of the profile by name."""
    return {
        "preferences": _preferences(),
        "colorfilters": "".join(map(_rule_line, _RULES)),
        "decode_as_entries": "".join(_decode_as(ports)),
    }


def _preferences() -> str:
    columns = ",\n".join(f'\t"{title}", "{form}"' for title, form in _COLUMNS)
    return f"gui.column.format: \n{columns}\n"


def _rule_line(rule: _Rule) -> str:
    """Return a line of `colorfilters`; its colours have 16 bits for each part."""
    colours = (
        ",".join(str(int(colour[at : at + 2], 16) * 257) for at in (0, 2, 4))
        for colour in (rule.background, rule.text)
    )
    background, text = colours
    return f"@kafkashark: {rule.name}@{rule.filter}@[{background}][{text}]\n"


def _decode_as(ports: KafkaPorts) -> Iterator[str]:
    for port in sorted(ports.plain):
        yield f"decode_as_entry: tcp.port,{port},(none),Kafka\n"
    for port in sorted(ports.tls - ports.plain):
        yield f"decode_as_entry: tcp.port,{port},(none),TLS\n"
    for port in sorted(ports.tls):
        yield f"decode_as_entry: tls.port,{port},(none),Kafka\n"
