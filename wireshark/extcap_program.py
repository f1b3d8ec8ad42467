"""
The program that Wireshark runs for our interfaces: extcap.

    python -P -m wireshark.extcap_program --extcap-interfaces
    python -P -m wireshark.extcap_program --extcap-interface kafkalog --capture ...

It is started for each question, at each start of Wireshark: nothing is loaded before it is needed.

Source: https://www.wireshark.org/docs/man-pages/extcap.html
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from dissector.errors import DissectorError, UsageError
from wireshark.extcap_interfaces import (
    INTERFACES,
    Interface,
    interface_sentences,
    link_type_sentences,
    setting_sentences,
)


class _Parser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Raise what is wrong: one line, as everywhere."""
        raise UsageError(message)


def main(words: Sequence[str] | None = None) -> int:
    """Answer a call of Wireshark; return the exit status."""
    try:
        return _answer(sys.argv[1:] if words is None else words)
    except DissectorError as error:
        text = str(error)
    except BrokenPipeError:
        return 0  # Wireshark ended the capture
    except OSError as error:
        text = f"{error.filename or 'output'}: {error.strerror or error}"
    from wireshark.extcap_capture import say

    say(text)
    return 2


def _answer(words: Sequence[str]) -> int:
    asked, others = _protocol_parser().parse_known_args(words)
    if asked.extcap_interfaces:
        return _print(*interface_sentences())
    interface = INTERFACES.get(asked.extcap_interface)
    if interface is None:
        raise UsageError(f"--extcap-interface takes {' or '.join(INTERFACES)}")
    if asked.extcap_dlts:
        return _print(*link_type_sentences(interface))
    if asked.extcap_config:
        return _print(*setting_sentences(interface))
    if asked.extcap_capture_filter:
        # Without --capture Wireshark only asks whether the filter is valid: any text means no.
        raise UsageError("there are no capture filters here; use a display filter")
    if asked.capture:
        return _capture(interface, _settings(interface, others), asked.fifo)
    return 0


def _capture(interface: Interface, given: Namespace, fifo: str) -> int:
    if not fifo:
        raise UsageError("--fifo is missing")
    from wireshark.extcap_capture import CAPTURES

    return CAPTURES[interface.name](given, Path(fifo))


def _protocol_parser() -> ArgumentParser:
    parser = _Parser(prog="kafkashark", allow_abbrev=False, add_help=False)
    for name in ("interfaces", "dlts", "config"):
        parser.add_argument(f"--extcap-{name}", action="store_true")
    parser.add_argument("--capture", action="store_true")
    for name in ("--extcap-interface", "--extcap-capture-filter", "--fifo"):
        parser.add_argument(name, default="")
    return parser


def _settings(interface: Interface, words: Sequence[str]) -> Namespace:
    """Return the settings of a capture; words that newer versions of Wireshark add are ignored."""
    parser = _Parser(prog="kafkashark", allow_abbrev=False, add_help=False)
    for each in interface.arguments:
        if each.kind == "boolflag":
            parser.add_argument(each.name, action="store_true")
        else:
            parser.add_argument(each.name, default=each.default, choices=each.choices or None)
    return parser.parse_known_args(words)[0]


def _print(*sentences: str) -> int:
    print(*sentences, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
