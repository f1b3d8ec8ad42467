"""Names, of settings and of fields, that suggest a secret."""

from __future__ import annotations

import re

_SECRET = re.compile(
    r"passw|pwd|passphrase|secret|token|key|credential|jaas|auth|user\.?info|connection\.?string"
    r"|certificate|private|scram-|signature|\bsas\b"
)


def suggests_secret(name: object) -> bool:
    """Return whether a name contains a word for a secret."""
    return isinstance(name, str) and _SECRET.search(name.lower()) is not None
