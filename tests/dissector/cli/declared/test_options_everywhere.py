"""Which command has which of the options that commands share, and why some lack one."""

from __future__ import annotations

import pytest

from dissector.cli.app import COMMANDS
from dissector.cli.parsing.command_table import CommandTable

READERS = {
    each.name: {name for found in each.options.declared().values() for name in found.names}
    for each in CommandTable(COMMANDS).all()
    if {"captures", "sources"} & each.options.declared().keys()
}
"""The commands that read captures, with their options."""

_SPARK = "queries on its tables do this"
_PAGE = "one page, or a text of it"
_PLAY = "plays requests, prints no rows of the capture"
_FILE = "writes packets"
_LIST = "a list of findings"
_SCREEN = "the screen has keys for it"
_WHOLE = "stands in for whole brokers"
_FIGURES = "writes figures, no rows"
_FILES = "judges whole files"
_SECRET = "a line for each kind of secret, in packet order"
_TWICE = "reads the capture more than once"

LACKING: dict[str, dict[str, str]] = {
    "-Y": {"secrets": _FILES, "serve": _WHOLE, "pipeline": _SPARK},
    "--since": {"secrets": _FILES, "serve": _WHOLE, "pipeline": _SPARK},
    "--until": {"secrets": _FILES, "serve": _WHOLE, "pipeline": _SPARK},
    "-i": {
        "secrets": _FILES,
        "export": _TWICE,
        "wireshark": _TWICE,
        "replay": _TWICE,
        "report": _TWICE,
        "serve": _TWICE,
        "pipeline": "--watch reads the files that a capture writes",
    },
    "-c": {
        "secrets": _SECRET,
        "exporter": _FIGURES,
        "export": _FILE,
        "wireshark": _FILE,
        "report": _PAGE,
        "browse": _SCREEN,
        "conform": "equal findings are one; --select chooses rules",
        "advise": "equal findings are one; --select chooses advices",
        "serve": _PLAY,
        "pipeline": _SPARK,
        "replay": "--limit is the number of requests",
    },
    "-t": {
        "secrets": _SECRET,
        "exporter": _FIGURES,
        "export": _FILE,
        "wireshark": _FILE,
        "report": _PAGE,
        "browse": _SCREEN,
        "conform": "findings name packets, no times",
        "advise": "findings name packets, no times",
        "upgrade": "prints no times",
        "stats": "prints no times; those of --by are UTC",
        "serve": _PLAY,
        "replay": _PLAY,
        "pipeline": _SPARK,
    },
    "--columns": {
        "secrets": _SECRET,
        "exporter": _FIGURES,
        "export": _FILE,
        "wireshark": _FILE,
        "report": _PAGE,
        "browse": _SCREEN,
        "conform": _LIST,
        "advise": _LIST,
        "findings": _LIST,
        "serve": _PLAY,
        "replay": _PLAY,
        "pipeline": _SPARK,
    },
    "--sort": {
        "secrets": _SECRET,
        "exporter": _FIGURES,
        "dissect": "packet order; pairs and records sort",
        "export": _FILE,
        "wireshark": _FILE,
        "report": _PAGE,
        "browse": _SCREEN,
        "conform": "by severity",
        "advise": "by rank",
        "findings": "by rank",
        "serve": _PLAY,
        "replay": _PLAY,
        "pipeline": _SPARK,
    },
    "--color": {
        "secrets": _SECRET,
        "exporter": _FIGURES,
        "export": _FILE,
        "wireshark": _FILE,
        "report": _PAGE,
        "browse": "themes, and NO_COLOR",
        "serve": _PLAY,
        "replay": _PLAY,
        "pipeline": _SPARK,
    },
    "--values": {"serve": "answers with the captured bytes"},
}
"""Of each option the commands without it, with the reason."""


@pytest.mark.parametrize("option", LACKING)
def test_an_option_is_there_or_cannot_apply(option: str) -> None:
    lacking = {name for name, options in READERS.items() if option not in options}
    assert lacking == LACKING[option].keys()
