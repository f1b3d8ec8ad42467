"""Encryption and passwords of listeners."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

from dissector.errors import UsageError
from replay.client.auth import PASSWORD_VARIABLE


def tls_context(
    certificate: Path | None, key: Path | None, authorities: Path | None
) -> ssl.SSLContext | None:
    """
    Return the context of listeners in TLS; None without a certificate.

    Args:
        certificate: PEM: the certificate, perhaps with its key.
        key: PEM: its private key.
        authorities: PEM: clients must have a certificate of one of these.

    Raises:
        UsageError: A file can't be used, or the certificate is missing.
    """
    if certificate is None:
        if key is not None or authorities is not None:
            raise UsageError("TLS requires a certificate: --tls-certificate FILE")
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
    Return the password of clients: of a file, or of the environment.

    Raises:
        UsageError: The file can't be read.
    """
    if file is None:
        return os.environ.get(PASSWORD_VARIABLE, "")
    try:
        return file.read_text().strip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise UsageError(f"{file}: the password cannot be read ({reason})") from None
