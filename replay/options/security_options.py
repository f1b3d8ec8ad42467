"""Command-line options for encryption and authentication of connections to a cluster."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from dissector.file_roles import READS
from dissector.protocol.embedded.secrecy.credentials import mask_texts
from dissector.view.text.escape import escaped


class SecurityOptions:
    """
    The options for one cluster, for `Annotated`.

    Args:
        prefix: Of their names, `upstream-` of `--upstream-tls`.
        cluster: The option that names the cluster; empty where a command has one cluster only.
    """

    def __init__(self, prefix: str = "", cluster: str = "") -> None:
        to, of, at = (f" {word} {cluster}" if cluster else "" for word in ("to", "for", "at"))
        self.prefix = prefix
        self.tls: Any = typer.Option(f"--{prefix}tls", help=f"Encrypt connections{to}.")
        self.tls_ca: Any = typer.Option(
            metavar="FILE",
            help=f"PEM: certificate authorities{of}, instead of the system's.",
        )
        self.tls_certificate: Any = typer.Option(
            metavar="FILE", help=f"PEM: the client certificate{of}."
        )
        self.tls_key: Any = typer.Option(metavar="FILE", help="PEM: the client's private key.")
        self.sasl: Any = typer.Option(
            metavar="MECHANISM",
            help=f"SASL mechanism{of}: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER. Secret: "
            f"$KAFKASHARK_PASSWORD, $KAFKASHARK_TOKEN, or --{prefix}sasl-secret.",
        )
        self.sasl_user: Any = typer.Option(
            metavar="NAME", help=f"User name for PLAIN and SCRAM{at}."
        )
        self.sasl_secret: Any = typer.Option(
            metavar="FILE", help=f"File with the password or token{of}."
        )
        self.also: Any = typer.Option(
            metavar="HOST[:PORT]",
            help="Another host to connect to, if the cluster names it as a broker. Repeatable.",
        )
        self.follow_advertised: Any = typer.Option(
            f"--{prefix}follow-advertised",
            help="Connect to all hosts that the cluster names as brokers.",
        )
        self.allow_plaintext_password: Any = typer.Option(
            f"--{prefix}allow-plaintext-password",
            help="Log in without TLS also at hosts that only the cluster names.",
        )


TARGET = SecurityOptions()

Tls: TypeAlias = Annotated[bool, TARGET.tls]
TlsCa: TypeAlias = Annotated[Path | None, TARGET.tls_ca, READS]
TlsCertificate: TypeAlias = Annotated[Path | None, TARGET.tls_certificate, READS]
TlsKey: TypeAlias = Annotated[Path | None, TARGET.tls_key, READS]
Sasl: TypeAlias = Annotated[str, TARGET.sasl]
SaslUser: TypeAlias = Annotated[str, TARGET.sasl_user]
SaslSecret: TypeAlias = Annotated[Path | None, TARGET.sasl_secret, READS]
Also: TypeAlias = Annotated[list[str] | None, TARGET.also]
FollowAdvertised: TypeAlias = Annotated[bool, TARGET.follow_advertised]
AllowPlaintextPassword: TypeAlias = Annotated[bool, TARGET.allow_plaintext_password]


def tell_once() -> Callable[[str], None]:
    """Return a function that prints each message once, however often a target is connected to."""
    return cache(tell)


def tell(text: str) -> None:
    """Print a message on stderr; on a terminal, in place of a progress line."""
    start = "\r\x1b[K" if sys.stderr.isatty() else ""
    print(f"{start}kafkashark:", escaped(mask_texts(text)), file=sys.stderr, flush=True)
