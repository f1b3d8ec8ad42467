"""
The software of client and broker, from ApiVersions.

Clients send their name and version (KIP-511). Brokers do not, but the API versions that they
offer may match those of a Kafka release.
"""

from __future__ import annotations

from conform.evidence.observation import Observation
from conform.evidence.offered_versions import offered_versions_of


def record_client_software(observation: Observation) -> None:
    """Record the software of client and broker from an ApiVersions exchange."""
    request, connection = observation.request_body, observation.connection
    name = request.get("client_software_name") if request is not None else None
    if request is not None and name:
        connection.client.software = f"{name} {request.client_software_version}".strip()
    offered = offered_versions_of(observation)
    if offered is not None:
        connection.broker.software = offered.release
