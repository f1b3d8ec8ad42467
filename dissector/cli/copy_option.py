"""The option of commands that count connections which a capture holds twice."""

from __future__ import annotations

from typing import Annotated

from dissector.cli.parsing.parameters import Option
from dissector.engine.reading.connection_copies import keep_copies


def _keep_copies(is_wanted: bool) -> bool:
    """Have all captures that are opened from here on count copies."""
    keep_copies(is_wanted)
    return is_wanted


KeepCopies = Annotated[
    bool,
    Option(
        "--keep-copies",
        callback=_keep_copies,
        help="Count connections twice that the capture holds twice: before and behind a NAT, in "
        "two VLANs or tunnels, at two taps.",
    ),
]
