"""
The software of both sides of a connection, as far as ApiVersions reveals it.

Clients send their name and version (KIP-511). Brokers do not; but the versions that they offer may
match those of a release of Kafka.
"""

from __future__ import annotations

from conform.evidence.observation import Observation
from conform.evidence.offered_versions import offered_versions_of


def record_client_software(observation: Observation) -> None:
    """Record the software of client and broker from an ApiVersions exchange."""
    asked, talk = observation.request_body, observation.connection
    name = asked.get("client_software_name") if asked is not None else None
    if asked is not None and name:
        talk.client.software = f"{name} {asked.client_software_version}".strip()
    offer = offered_versions_of(observation)
    if offer is not None:
        talk.broker.software = offer.release
