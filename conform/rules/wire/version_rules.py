"""V, and F14 to F17: the versions that brokers offer and clients use (KIP-35, 511, 584)."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from conform.evidence.observation import Observation
from conform.evidence.offered_versions import (
    ConnectionOffer,
    OffersByBroker,
    offered_versions_of,
)
from conform.evidence.reporter import Reporter
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from conform.registry.rule_screen import Screen, none_judged, one_judged, one_unjudged
from conform.registry.screened_columns import Bools, Ints, ScreenedPartitions, ScreenedRows
from dissector.engine.tables.exchange_table import ANSWERED
from dissector.protocol.apis import api_name
from dissector.protocol.headers import API_VERSIONS
from dissector.protocol.messages import UNSUPPORTED_VERSION
from dissector.view.text.escape import quoted

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def _keeps_offer(partitions: ScreenedPartitions) -> Bools:
    """Let requests pass whose version was offered before; on incomplete connections any."""
    rows, offer = partitions.rows, partitions.versions.of_connection
    is_offered = offer.is_known & offer.is_before & offer.has_version
    return rows.has_request & ~rows.is_of(API_VERSIONS) & (~rows.is_complete | is_offered)


@rule(
    "F14",
    "Request in a version that the broker does not offer",
    Severity.ERROR,
    source="SocketServer.parseRequestHeader: closes the connection (KIP-35, KIP-97)",
    asks="API and version of a request are offered in the last ApiVersions response of this "
    "connection.",
    example="Metadata v13, where ApiVersions offered Metadata v0-12",
    screen=Screen(one_judged, partitions=_keeps_offer, unjudged=one_unjudged),
)
def check_requested_version(observation: Observation, reporter: Reporter) -> None:
    """Report requests in versions that the broker does not offer."""
    offered = observation.connection.state(ConnectionOffer)
    key, version, packet = observation.api_key, observation.version, observation.row.request_packet
    if key is None or version is None or packet is None:
        return
    if key == API_VERSIONS:
        _record_offer(observation, offered)
        return
    if not observation.is_complete:
        reporter.count_unjudged(observation.connection.incomplete_reason)
        return
    if offered.ranges is None or packet < offered.packet:
        reporter.count_unjudged("the broker had not sent its versions on this connection")
        return
    reporter.count_judged()
    lowest, highest = offered.ranges.get(key, (0, -1))
    if not lowest <= version <= highest:
        offer = f"versions {lowest} to {highest}" if highest >= 0 else "no version"
        found = f"version {version}, but the broker offers {offer} of the API"
        reporter.report_violation(Side.CLIENT, found)


def _record_offer(observation: Observation, offered: ConnectionOffer) -> None:
    """Record the versions in an ApiVersions response."""
    offer = offered_versions_of(observation)
    if offer is not None:
        offered.ranges = offer.ranges
        offered.packet = observation.row.response_packet or 0


_CLIENT_TELEMETRY_APIS = (71, 72)
"""Brokers without a telemetry plugin do not offer these APIs, but respond to them."""


def _is_accepted(partitions: ScreenedPartitions) -> Bools:
    """Let requests pass that get no response, or one as the broker's offer allows."""
    rows, versions = partitions.rows, partitions.versions
    table, offer = rows.table, versions.of_broker
    may_answer = ~offer.is_before | offer.has_version | versions.is_refused
    may_answer |= np.isin(table.api_key, _CLIENT_TELEMETRY_APIS)
    is_unasked = ~rows.is_complete | (table.status != ANSWERED)
    passes: Bools = is_unasked | (offer.is_known & may_answer)
    return rows.has_request & ~rows.is_of(API_VERSIONS) & passes


def _answers_behind_offer(partitions: ScreenedPartitions) -> Ints:
    """Count the responses to requests behind an offer of the broker."""
    rows, offer = partitions.rows, partitions.versions.of_broker
    is_answered = rows.table.status == ANSWERED
    counts: Ints = (rows.is_complete & is_answered & offer.is_before).astype(np.int64)
    return counts


@rule(
    "F17",
    "Response to a version that the broker does not offer",
    Severity.ERROR,
    source="SocketServer.parseRequestHeader, RequestContext.parseRequest: a request of an API or "
    "version that is not offered closes the connection, except ApiVersions",
    asks="A request whose API or version the broker does not offer gets no response, or "
    "UNSUPPORTED_VERSION (35).",
    example="API 500 gets a response",
    screen=Screen(none_judged, partitions=_is_accepted, count=_answers_behind_offer),
)
def check_offered_version_accepted(observation: Observation, reporter: Reporter) -> None:
    """Report responses to requests in versions that the broker does not offer."""
    offers = observation.capture_state.state(OffersByBroker)
    key, version, broker = (
        observation.api_key,
        observation.version,
        observation.connection.broker.address,
    )
    if key == API_VERSIONS:
        offer = offered_versions_of(observation)
        if offer is not None:
            offers[broker] = observation.row.response_packet or 0, offer.ranges
        return
    offer_packet, ranges = offers.get(broker, (0, None))
    if key is None or version is None or ranges is None or not observation.is_complete:
        return
    if (
        observation.exchange.status != "answered"
        or (observation.row.request_packet or 0) < offer_packet
    ):
        return
    reporter.count_judged()
    lowest, highest = ranges.get(key, (0, -1))
    if lowest <= version <= highest or key in _CLIENT_TELEMETRY_APIS or observation.is_refused:
        return
    found = f"a response to API {key} version {version}, which the broker does not offer"
    reporter.report_violation(Side.BROKER, found)


def _is_not_first(rows: ScreenedRows) -> Bools:
    """Let exchanges pass whose request is not the first of its connection."""
    later: Bools = rows.table.request.offset != 0
    return later


@rule(
    "F15",
    "Connection that does not begin with ApiVersions",
    Severity.NOTE,
    source="KIP-35: a client requests the versions of each broker before anything else",
    asks="The first request of a connection is ApiVersions, so that the broker's versions are "
    "known. Clients older than Kafka 0.10, and those that request the versions once for all "
    "connections, omit it.",
    example="Metadata as the first request of a connection",
    screen=Screen(none_judged, rows=_is_not_first),
)
def check_api_versions_first(observation: Observation, reporter: Reporter) -> None:
    """Check that the first request of a connection is ApiVersions."""
    if observation.api_key is None or observation.request_offset != 0:
        return
    if not observation.is_complete:
        reporter.count_unjudged(observation.connection.incomplete_reason)
        return
    reporter.count_judged()
    if observation.api_key != API_VERSIONS:
        reporter.report_violation(Side.CLIENT, f"the first request is '{observation.exchange.api}'")


@rule(
    "V01",
    "Unsupported ApiVersions request not rejected in version 0",
    Severity.ERROR,
    source="ApiVersionsRequest.getErrorResponse, RequestContext.parseRequest (KIP-511)",
    asks="The response to ApiVersions in an unsupported version is error 35 in version 0, with "
    "the version range of ApiVersions and of no other API.",
    example="ApiVersions v9, and a response with error 35 in version 3",
    apis=("ApiVersions",),
)
def check_rejection_version(observation: Observation, reporter: Reporter) -> None:
    """Check how an ApiVersions request in an unsupported version is rejected."""
    version = observation.version
    for _, mismatch in observation.decode_mismatches:
        if mismatch.rule == "V01":
            reporter.count_judged()
            reporter.report_violation(Side.BROKER, mismatch.found)
            return
    if observation.response is None or observation.response.body is None or version is None:
        reporter.count_unjudged(observation.unreadable_reason(request=False))
        return
    response = observation.response.body
    if response.error_code != UNSUPPORTED_VERSION:
        return
    reporter.count_judged()
    if observation.response.api_version != 0:
        reporter.report_violation(
            Side.BROKER, f"the error response has version {observation.response.api_version}, not 0"
        )
        return
    ranges = {
        each.api_key: (each.min_version, each.max_version) for each in response.api_keys or ()
    }
    own_range = ranges.pop(API_VERSIONS, None)
    if own_range is None:
        found = "the error response lacks the versions of ApiVersions, so clients fall back to v0"
        reporter.report_violation(Side.BROKER, found, path="api_keys", severity=Severity.WARNING)
    elif own_range[0] <= version <= own_range[1]:
        reporter.report_violation(
            Side.BROKER, f"version {version} is rejected, but offered", path="api_keys"
        )
    if ranges:
        found = f"the error response contains the versions of {len(ranges)} other APIs"
        reporter.report_violation(Side.BROKER, found, path="api_keys", severity=Severity.NOTE)


@rule(
    "V02",
    "Invalid version ranges in ApiVersions",
    Severity.ERROR,
    source="ApiVersionsResponse.json: ApiKey is a map key; ApiVersionsResponse.java",
    asks="Each API occurs once in the response, its lowest version is not above its highest, and "
    "ApiVersions is included.",
    example="Metadata from 5 to 3",
    apis=("ApiVersions",),
)
def check_offered_ranges(observation: Observation, reporter: Reporter) -> None:
    """Check the version ranges in an ApiVersions response."""
    offer, response = offered_versions_of(observation), observation.response_body
    if offer is None or response is None:
        return
    reporter.count_judged()
    if offer.is_canonical:
        return
    keys = response.api_keys or ()
    for index, each in enumerate(keys):
        if each.api_key < 0:
            reporter.report_violation(
                Side.BROKER, f"offers API {each.api_key}", path=f"api_keys[{index}].api_key"
            )
        if not 0 <= each.min_version <= each.max_version:
            found = f"offers '{api_name(each.api_key)}' from {each.min_version}"
            found += f" to {each.max_version}"
            reporter.report_violation(Side.BROKER, found, path=f"api_keys[{index}]")
    for key, count in Counter(each.api_key for each in keys).items():
        if count > 1:
            reporter.report_violation(
                Side.BROKER, f"'{api_name(key)}' occurs {count} times", path="api_keys"
            )
    if all(each.api_key != API_VERSIONS for each in keys):
        reporter.report_violation(Side.BROKER, "ApiVersions itself is not offered", path="api_keys")


@rule(
    "V03",
    "Invalid name or version of the client software",
    Severity.ERROR,
    source="ApiVersionsRequest.java: SOFTWARE_NAME_VERSION_PATTERN (KIP-511); else INVALID_REQUEST",
    asks="Name and version of the client software match "
    "[a-zA-Z0-9](?:[a-zA-Z0-9\\-.]*[a-zA-Z0-9])?",
    example="client_software_name 'my client'",
    apis=("ApiVersions",),
)
def check_client_software(observation: Observation, reporter: Reporter) -> None:
    """Check name and version of the client software by the pattern of brokers."""
    request = observation.request_body
    if request is None or request.get("client_software_name") is None:
        return
    reporter.count_judged()
    for name in ("client_software_name", "client_software_version"):
        if not _SOFTWARE.fullmatch(request[name]):
            reporter.report_violation(Side.CLIENT, f"{name} is {quoted(request[name])}", path=name)


@rule(
    "V04",
    "Feature from version 0 in a response below version 4",
    Severity.ERROR,
    source="ApiVersionsResponse.json: v4 'fixes KAFKA-17011'; Java clients before 3.9 fail on a "
    "lowest version of 0",
    asks="In responses below version 4 no supported feature has the lowest version 0.",
    example="ApiVersions v3 with the feature kraft.version 0 to 1",
    apis=("ApiVersions",),
)
def check_feature_visibility(observation: Observation, reporter: Reporter) -> None:
    """Report features from version 0 in responses of version 3."""
    response, version = (
        observation.response_body,
        observation.response.api_version if observation.response else None,
    )
    if response is None or version is None or version < 3:
        return
    reporter.count_judged()
    for at, each in enumerate(response.supported_features or ()):
        if version < 4 and each.min_version < 1:
            reporter.report_violation(
                Side.BROKER,
                f"{quoted(each.name)} is offered from version {each.min_version} on",
                path=f"supported_features[{at}].min_version",
            )


@rule(
    "V07",
    "Invalid range of a supported or finalized feature",
    Severity.ERROR,
    source="KIP-584; Features.java, SupportedVersionRange.java, FinalizedFeatures.java",
    asks="The lowest version of a feature is not above its highest; the level of a finalized "
    "feature is within its supported versions.",
    example="metadata.version is finalized at 30, and supported from 7 to 29",
    apis=("ApiVersions",),
)
def check_feature_ranges(observation: Observation, reporter: Reporter) -> None:
    """Check the ranges of features, and finalized against supported ones."""
    response = observation.response_body
    if response is None or "supported_features" not in response:
        return
    reporter.count_judged()
    supported = {}
    for at, each in enumerate(response.supported_features or ()):
        supported[each.name] = each
        if each.min_version > each.max_version:
            found = f"{quoted(each.name)} from {each.min_version} to {each.max_version}"
            reporter.report_violation(Side.BROKER, found, path=f"supported_features[{at}]")
    for at, each in enumerate(response.finalized_features or ()):
        lowest, highest = each.min_version_level, each.max_version_level
        feature = supported.get(each.name)
        found = ""
        if lowest > highest:
            found = f"{quoted(each.name)} is finalized from {lowest} to {highest}"
        elif feature is not None and highest > feature.max_version:
            found = f"{quoted(each.name)} is finalized at {highest}"
            found += f", but supported up to {feature.max_version}"
        if found:
            reporter.report_violation(Side.BROKER, found, path=f"finalized_features[{at}]")


class _FeatureEpoch:
    """The newest epoch of the finalized features on a connection."""

    def __init__(self) -> None:
        self.newest = -1


@rule(
    "V05",
    "Epoch of the finalized features that decreases",
    Severity.ERROR,
    source="ApiVersionsResponse.java: UNKNOWN_FINALIZED_FEATURES_EPOCH = -1 (KIP-584)",
    asks="finalized_features_epoch is -1 while it is unknown, and never decreases on a connection.",
    example="finalized_features_epoch 7, and later 5",
    apis=("ApiVersions",),
)
def check_feature_epoch(observation: Observation, reporter: Reporter) -> None:
    """Check that the epoch does not decrease on a connection."""
    response = observation.response_body
    epoch = None if response is None else response.get("finalized_features_epoch")
    if epoch is None:
        return
    reporter.count_judged()
    state = observation.connection.state(_FeatureEpoch)
    if epoch < -1:
        reporter.report_violation(
            Side.BROKER, f"the epoch is {epoch}", path="finalized_features_epoch"
        )
    elif -1 < epoch < state.newest and observation.is_complete:
        found = f"the epoch is {epoch}, after {state.newest}"
        reporter.report_violation(Side.BROKER, found, path="finalized_features_epoch")
    state.newest = max(state.newest, epoch)
