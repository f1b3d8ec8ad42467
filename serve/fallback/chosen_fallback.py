"""Choice of the fallback from command-line options."""

from __future__ import annotations

from cluster.client.auth import Security
from dissector.errors import UsageError
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
    Return the fallback for requests without a captured answer; None without one.

    Args:
        upstream: Addresses of a cluster; None selects the embedded broker, if it is installed.
        security: Encryption and authentication for the upstream cluster.
        is_strict: Disable fallbacks.

    Raises:
        UsageError: Security options without an upstream cluster.
    """
    if upstream is None and security != Security():
        raise UsageError("options of --upstream require --upstream HOST:PORT")
    if is_strict:
        return None
    if upstream is not None:
        return UpstreamCluster(upstream.split(","), security)
    return EmbeddedCluster() if is_installed() else None
