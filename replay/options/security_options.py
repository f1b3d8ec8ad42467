"""How a target is logged in to, as options of the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

Tls: TypeAlias = Annotated[bool, typer.Option("--tls", help="Encrypt.")]
TlsCa: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FILE", help="PEM: whom to trust, other than usual.")
]
TlsCertificate: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FILE", help="PEM: our own certificate.")
]
TlsKey: TypeAlias = Annotated[Path | None, typer.Option(metavar="FILE", help="PEM: its key.")]
Sasl: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="MECHANISM",
        help="PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER; the secret comes from "
        "$KAFKASHARK_PASSWORD or $KAFKASHARK_TOKEN, or --sasl-secret.",
    ),
]
SaslUser: TypeAlias = Annotated[str, typer.Option(metavar="NAME", help="For PLAIN and SCRAM.")]
SaslSecret: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Holds the password or the token.")
]
