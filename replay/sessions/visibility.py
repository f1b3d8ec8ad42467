"""
Visibility: waits until the effect of a response is visible on all brokers.

Brokers respond before that: markers of a transaction are written later, and metadata of topics
reaches brokers after the controller. Steps that depend on a response (see `dependencies`) depend on
its effect too.

Source: KIP-98, KIP-890 (transactions); KIP-500 (brokers follow the metadata log).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress

from construct import Container

from cluster.client.cluster import Cluster
from dissector.errors import ReplayError
from replay.sessions.open_transactions import is_completed


async def wait_until_visible(
    api: str, request: Container, response: Container, cluster: Cluster
) -> None:
    """
    Return when the effect of a response is visible, or after the timeout.

    Args:
        api: The name of the API.
        request: The sent request body.
        response: The response body.
        cluster: The target.
    """
    is_done = _CHECKS.get(api)
    if is_done is None or request.get("validate_only"):
        return
    attempts = 0
    with suppress(ReplayError):  # dependent requests will fail and be reported
        async for _ in cluster.attempts(f"{api} took no effect"):
            attempts += 1
            if await is_done(request, response, cluster):
                return
            if is_done is _are_settings_applied and attempts == _MAX_SETTING_CHECKS:
                return


async def _is_ended(request: Container, response: Container, cluster: Cluster) -> bool:
    if response.error_code:
        return True
    return await is_completed(cluster, request.transactional_id) is not False


async def _are_topics_created(request: Container, response: Container, cluster: Cluster) -> bool:
    names = [each.name for each in response.topics if not each.error_code]
    await cluster.refresh(names)
    return all(name in cluster.topics for name in names)


async def _are_topics_deleted(request: Container, response: Container, cluster: Cluster) -> bool:
    names = [each.name for each in response.responses if not each.error_code and each.name]
    await cluster.refresh(names)
    return not any(name in cluster.topics for name in names)


async def _are_partitions_created(
    request: Container, response: Container, cluster: Cluster
) -> bool:
    made = {each.name for each in response.results if not each.error_code}
    await cluster.refresh(made)
    return all(
        cluster.leader(each.name, each.count - 1) is not None
        for each in request.topics
        if each.name in made
    )


async def _are_settings_applied(request: Container, response: Container, cluster: Cluster) -> bool:
    failed = {
        (each.resource_type, each.resource_name) for each in response.responses if each.error_code
    }
    wanted = {
        (each.resource_type, each.resource_name): {
            config.name: config.value
            for config in each.configs
            if config.get("config_operation", _SET) == _SET
        }
        for each in request.resources
        if each.resource_type in _DESCRIBED_BY_ANY_BROKER
    }
    resources = [
        {"resource_type": kind, "resource_name": name, "configuration_keys": list(configs)}
        for (kind, name), configs in wanted.items()
        if (kind, name) not in failed and configs
    ]
    if not resources:
        return True
    body = {"resources": resources, "include_synonyms": False, "include_documentation": False}
    described = await cluster.request(None, "DescribeConfigs", body)
    return all(
        config.is_sensitive
        or config.value == wanted[each.resource_type, each.resource_name][config.name]
        for each in described.results
        for config in each.configs or ()
    )


_MAX_SETTING_CHECKS = 8
"""Limit of attempts, as a broker may normalise a value, which then looks like an old one."""

_SET = 0
"""The operation SET of IncrementalAlterConfigs."""

_DESCRIBED_BY_ANY_BROKER = frozenset({2, 32})
"""Resources that any broker can describe: topics and groups."""

_CHECKS: dict[str, Callable[[Container, Container, Cluster], Awaitable[bool]]] = {
    "EndTxn": _is_ended,
    "CreateTopics": _are_topics_created,
    "DeleteTopics": _are_topics_deleted,
    "CreatePartitions": _are_partitions_created,
    "AlterConfigs": _are_settings_applied,
    "IncrementalAlterConfigs": _are_settings_applied,
}
"""API -> the check whether its response is in effect."""
