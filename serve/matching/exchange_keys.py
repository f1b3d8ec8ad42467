"""Keys of captured exchanges, from the most to the least specific."""

from __future__ import annotations

from collections.abc import Hashable

from construct import Container

from dissector.protocol.apis import api_name
from serve.matching.meaning import meaning_key, meaning_of

EPOCH_GROUPS = ("ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat")
"""APIs of groups with member epochs (KIP-848, KIP-932, KIP-1071)."""

SHARE_SESSIONS = ("ShareFetch", "ShareAcknowledge")
"""APIs of share sessions; acknowledgements differ between runs."""


def keys_of(
    api_key: int, client_id: str | None, request: Container, response: Container | None = None
) -> list[Hashable]:
    """
    Return the keys of an exchange, or of a request.

    Args:
        api_key: The API.
        client_id: The client id of the request.
        request: The canonical request.
        response: The canonical response, for captured exchanges.
    """
    name = api_name(api_key)
    if name == "JoinGroup":
        return _join_exchange_keys(request, client_id, response)
    if name == "SyncGroup":
        return sync_keys(request.group_id, request.member_id, request.generation_id)
    if name in EPOCH_GROUPS:
        member = (response.get("member_id") if response else None) or request.member_id
        keys: list[Hashable] = [beat_key(name, request.group_id, member)]
        if response is not None and request.member_epoch == 0:
            keys += first_beat_keys(name, request.group_id, client_id)
        elif response is not None and request.member_epoch < 0:
            keys.append((name, "leaves", request.group_id))
        return keys
    if name in SHARE_SESSIONS:
        return [share_key(name, request.group_id, request.member_id)]
    if name == "InitProducerId":
        transactional_id = request.transactional_id
        return [
            (name, transactional_id, client_id),
            (name, transactional_id),
            *([producer_of_client(client_id)] if response and transactional_id else []),
        ]
    meaning = meaning_of(api_key, request)
    return [meaning_key(api_key, meaning, client_id), meaning_key(api_key, meaning)]


def _join_exchange_keys(
    request: Container, client_id: str | None, response: Container | None
) -> list[Hashable]:
    instance = request.group_instance_id
    keys = join_keys(request.group_id, request.member_id, instance, client_id)
    if response is not None and not response.error_code and not request.member_id:
        # Rejoins beyond the captured ones get the answer to the first join.
        keys += join_keys(request.group_id, response.member_id, instance, client_id)
    return keys


def join_keys(
    group: str, member: str, instance: str | None, client_id: str | None
) -> list[Hashable]:
    """Return the keys of a JoinGroup request: by member id, or by client id for new members."""
    if member:
        return [("JoinGroup", group, member)]
    return [
        ("JoinGroup", group, "", instance, client_id),
        ("JoinGroup", group, "", instance),
        ("JoinGroup", group, ""),
    ]


def sync_keys(group: str, member: str, generation: int) -> list[Hashable]:
    """Return the keys of a SyncGroup request."""
    return [("SyncGroup", group, member, generation), ("SyncGroup", group, member)]


def beat_key(api: str, group: str, member: str) -> Hashable:
    """Return the key of a member's heartbeats."""
    return api, group, member


def share_key(api: str, group: str | None, member: str | None) -> Hashable:
    """Return the key of a member's share session requests."""
    return api, group, member


def producer_of_client(client_id: str | None) -> Hashable:
    """Return the key of all transactional producers with a client id."""
    return "InitProducerId", "of client", client_id


def first_beat_keys(api: str, group: str, client_id: str | None) -> list[Hashable]:
    """Return the keys of heartbeats that join a group."""
    return [(api, "joins", group, client_id), (api, "joins", group)]
