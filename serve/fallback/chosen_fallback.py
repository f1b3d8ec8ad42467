"""Which fallback the options ask for."""

from __future__ import annotations

from dissector.errors import UsageError
from replay.client.auth import Security
from serve.answers.answerer import Fallback
from serve.fallback.embedded_cluster import EmbeddedCluster, is_installed
from serve.fallback.upstream_cluster import UpstreamCluster


def chosen_fallback(
    upstream: str | None,
    security: Security = Security(),  # noqa: B008 (frozen)
    *,
    is_strict: bool,
) -> Fallback | None:
    """
    Return what answers in place of the capture; None if nothing does.

    Args:
        upstream: Addresses of a cluster; without them, the embedded broker, if it is installed.
        security: Encryption and authentication of connections to them.
        is_strict: Nothing answers in place of the capture.

    Raises:
        UsageError: There is nothing to secure.
    """
    if upstream is None and security != Security():
        raise UsageError("options of --upstream require it: --upstream HOST:PORT")
    if is_strict:
        return None
    if upstream is not None:
        return UpstreamCluster(upstream.split(","), security)
    return EmbeddedCluster() if is_installed() else None
