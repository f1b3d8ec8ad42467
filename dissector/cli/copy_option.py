"""The option of commands that count connections which a capture holds twice."""

from __future__ import annotations

from typing import Annotated

from dissector.cli.parsing.parameters import Option
from dissector.engine.reading.connection_copies import keep_copies

KeepCopies = Annotated[
    bool,
    Option(
        "--keep-copies",
        callback=keep_copies,
        help="Count connections twice that the capture holds twice: before and behind a NAT, in "
        "two VLANs or tunnels, at two taps.",
    ),
]
