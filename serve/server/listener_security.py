"""TLS and passwords of listeners."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

from cluster.client.auth import PASSWORD_VARIABLE
from dissector.errors import UsageError
from dissector.small_files import read_small_text


def tls_context(
    certificate: Path | None, key: Path | None, authorities: Path | None, prefix: str = ""
) -> ssl.SSLContext | None:
    """
    Return the TLS context of listeners; None without a certificate.

    Args:
        certificate: PEM file with the certificate, optionally with its key.
        key: PEM file with the private key.
        authorities: PEM file with authorities for client certificates, which become required.
        prefix: Of the command-line options for them, in messages.

    Raises:
        UsageError: A file is unusable, or the certificate is missing.
    """
    if certificate is None:
        if key is not None or authorities is not None:
            raise UsageError(f"TLS requires a certificate: --{prefix}tls-certificate FILE")
        return None
    try:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key)
        if authorities is not None:
            context.load_verify_locations(authorities)
            context.verify_mode = ssl.CERT_REQUIRED
    except (OSError, ssl.SSLError) as error:
        names = ", ".join(str(each) for each in (certificate, key, authorities) if each)
        raise UsageError(f"{names}: no usable certificates ({error})") from None
    return context


def login_password(file: Path | None) -> str:
    """
    Return the password of clients from a file or the environment.

    Raises:
        UsageError: The file is unreadable.
    """
    if file is None:
        return os.environ.get(PASSWORD_VARIABLE, "")
    return read_small_text(file, "the password ").strip("\r\n")
