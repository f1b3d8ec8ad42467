"""Command-line options of commands that read captures and talk to brokers or clients."""

from __future__ import annotations

import sys
from typing import Annotated, TypeAlias

import typer

from dissector.engine.reading.connection_copies import keep_copies
from dissector.file_roles import READS
from dissector.protocol.definitions.sources import READS_SCHEMAS, use_sources
from dissector.view.text.escape import escaped


def _use_schemas(sources: list[str] | None) -> list[str] | None:
    for problem in use_sources(sources):
        print("kafkashark:", escaped(problem), file=sys.stderr)
    return sources


Ports: TypeAlias = Annotated[
    list[int] | None,
    typer.Option(
        "--port", metavar="N", min=1, max=65535, help="A Kafka port, as for the other commands."
    ),
]
Keylogs: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--keylog",
        metavar="FILE",
        help="TLS key log of the captured connections. May be given more than once.",
        show_default=False,
    ),
    READS,
]
DecodeAs: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--decode-as",
        metavar="RULE",
        help="Tunnel on another UDP port, as for the other commands: udp.port==10800,vxlan.",
        show_default=False,
    ),
]
KeepCopies: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--keep-copies",
        callback=keep_copies,
        help="Take connections twice that the capture holds twice, as for the other commands.",
    ),
]
Schemas: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--schemas",
        metavar="JAR|DIR",
        callback=_use_schemas,
        help="Message definitions that replace built-in ones, as for the other commands.",
    ),
    READS_SCHEMAS,
]
