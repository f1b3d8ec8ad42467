"""Which fallback the options ask for."""

from __future__ import annotations

from serve.answers.answerer import Fallback
from serve.fallback.embedded_cluster import EmbeddedCluster, is_installed
from serve.fallback.upstream_cluster import UpstreamCluster


def chosen_fallback(upstream: str | None, *, is_strict: bool) -> Fallback | None:
    """
    Return what answers in place of the capture; None if nothing does.

    Args:
        upstream: Addresses of a cluster; without them, the embedded broker, if it is installed.
        is_strict: Nothing answers in place of the capture.
    """
    if is_strict:
        return None
    if upstream is not None:
        return UpstreamCluster(upstream.split(","))
    return EmbeddedCluster() if is_installed() else None
