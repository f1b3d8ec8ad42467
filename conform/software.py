"""
What the two sides of a connection are, as far as ApiVersions tells.

Clients say it (KIP-511). Brokers do not; but the versions that they offer are those of a release of
Kafka, or are not.
"""

from __future__ import annotations

from conform.offer import offer_of
from conform.turn import Turn


def learn_software(turn: Turn) -> None:
    """Note what an exchange of ApiVersions tells of client and broker."""
    asked, talk = turn.asked, turn.talk
    name = asked.get("client_software_name") if asked is not None else None
    if asked is not None and name:
        talk.client.software = f"{name} {asked.client_software_version}".strip()
    offer = offer_of(turn)
    if offer is not None:
        talk.broker.software = offer.release
