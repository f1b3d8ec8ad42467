"""Command-line options for encryption and authentication of connections to `--upstream`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

Tls: TypeAlias = Annotated[
    bool, typer.Option("--upstream-tls", help="Encrypt connections to --upstream.")
]
TlsCa: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="PEM: certificate authorities for --upstream, instead of the system's.",
    ),
]
TlsCertificate: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FILE", help="PEM: the client certificate for --upstream.")
]
TlsKey: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FILE", help="PEM: the client's private key.")
]
Sasl: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="MECHANISM",
        help="SASL mechanism for --upstream: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER. "
        "Secret: $KAFKASHARK_PASSWORD, $KAFKASHARK_TOKEN, or --upstream-sasl-secret.",
    ),
]
SaslUser: TypeAlias = Annotated[
    str, typer.Option(metavar="NAME", help="User name for PLAIN and SCRAM at --upstream.")
]
SaslSecret: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="File with the password or token for --upstream."),
]
