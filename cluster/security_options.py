"""Command-line options for encryption and authentication of connections to a cluster."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from dissector.cli.parsing.declarations import Options, option, with_prefix
from dissector.file_roles import READS

if TYPE_CHECKING:
    from cluster.client.auth import Security


class TargetOptions(Options):
    """The options for the cluster that a command talks to."""

    heading: ClassVar[str] = "Security of the target"
    prefix: ClassVar[str] = ""

    tls: bool = option("--tls", default=False, help="Encrypt connections.")
    tls_ca: Path | None = option(
        "--tls-ca",
        default=None,
        metavar="FILE",
        help="PEM: certificate authorities, instead of the system's.",
        role=READS,
    )
    tls_certificate: Path | None = option(
        "--tls-certificate",
        default=None,
        metavar="FILE",
        help="PEM: the client certificate.",
        role=READS,
    )
    tls_key: Path | None = option(
        "--tls-key",
        default=None,
        metavar="FILE",
        help="PEM: the client's private key.",
        role=READS,
    )
    sasl: str = option(
        "--sasl",
        default="",
        metavar="MECHANISM",
        help="SASL mechanism: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER. Secret: "
        "$KAFKASHARK_PASSWORD, $KAFKASHARK_TOKEN, or --sasl-secret.",
    )
    sasl_user: str = option(
        "--sasl-user", default="", metavar="NAME", help="User name for PLAIN and SCRAM."
    )
    sasl_secret: Path | None = option(
        "--sasl-secret",
        default=None,
        metavar="FILE",
        help="File with the password or token.",
        role=READS,
    )
    also: tuple[str, ...] = option(
        "--also",
        default=(),
        metavar="HOST[:PORT]",
        help="Another host to connect to, if the cluster names it as a broker. Repeatable.",
    )
    follow_advertised: bool = option(
        "--follow-advertised",
        default=False,
        help="Connect to all hosts that the cluster names as brokers.",
    )
    allow_plaintext_password: bool = option(
        "--allow-plaintext-password",
        default=False,
        help="Log in without TLS also at hosts that only the cluster names.",
    )

    def security(self) -> Security:
        """
        Return the settings of these options.

        Raises:
            UsageError: They contradict each other, or a file can't be read.
        """
        from cluster.client.auth import Security

        return Security.read(
            mechanism=self.sasl,
            username=self.sasl_user,
            secret_file=self.sasl_secret,
            tls=self.tls,
            authority_file=self.tls_ca,
            certificate_file=self.tls_certificate,
            key_file=self.tls_key,
            also=self.also,
            follow_advertised=self.follow_advertised,
            allow_plaintext_password=self.allow_plaintext_password,
            option_prefix=self.prefix,
            tell=tell_once(),
        )


class UpstreamOptions(TargetOptions):
    """The options for a cluster beside the one that a command stands in for."""

    heading: ClassVar[str] = "Security of --upstream"
    prefix: ClassVar[str] = "upstream-"


with_prefix(UpstreamOptions, UpstreamOptions.prefix)


def tell_once() -> Callable[[str], None]:
    """Return a function that prints each message once, however often a target is connected to."""
    return cache(tell)


def tell(text: str) -> None:
    """Print a message on stderr; on a terminal, in place of a progress line."""
    from dissector.protocol.embedded.secrecy.credentials import mask_texts
    from dissector.view.text.escape import escaped

    start = "\r\x1b[K" if sys.stderr.isatty() else ""
    print(f"{start}kafkashark:", escaped(mask_texts(text)), file=sys.stderr, flush=True)
