"""Command-line options for TLS on listeners, and for faults of what they answer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from dissector.cli.parsing.declarations import Options, option
from dissector.file_roles import READS

if TYPE_CHECKING:
    import ssl


class ListenerTlsOptions(Options):
    """The options for TLS between clients and listeners."""

    heading: ClassVar[str] = "Security of the listeners"
    listener_prefix: ClassVar[str] = ""

    listener_certificate: Path | None = option(
        "--tls-certificate",
        default=None,
        metavar="FILE",
        help="PEM: certificate of the listeners; enables TLS.",
        role=READS,
    )
    listener_key: Path | None = option(
        "--tls-key",
        default=None,
        metavar="FILE",
        help="PEM: private key of the certificate.",
        role=READS,
    )
    listener_authorities: Path | None = option(
        "--tls-ca",
        default=None,
        metavar="FILE",
        help="PEM: authorities; client certificates are required.",
        role=READS,
    )

    def listener_tls(self) -> ssl.SSLContext | None:
        """
        Return the TLS context of the listeners; None without a certificate.

        Raises:
            UsageError: A file is unusable, or the certificate is missing.
        """
        from serve.server.listener_security import tls_context

        files = self.listener_certificate, self.listener_key, self.listener_authorities
        return tls_context(*files, self.listener_prefix)


class FaultOptions(Options):
    """Faults of answers."""

    faults: tuple[tuple[str, str], ...] = option(
        "--fault",
        default=(),
        metavar="'FILTER' ERROR|delay:MS|close|truncate[,times:N]",
        help="Inject a fault into requests that pass a filter, or the first N. Repeatable.",
    )
