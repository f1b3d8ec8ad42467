"""Probes of ApiVersions."""

from __future__ import annotations

from conform.probe.probe_registry import ProbeContext, probe
from conform.probe.probe_reporter import ProbeReporter, response_prefix
from conform.probe.probe_target import CLIENT_SOFTWARE
from conform.probe.raw_exchange import RawExchange, encode_request
from dissector.protocol.headers import API_VERSIONS
from dissector.protocol.messages import UNSUPPORTED_VERSION

_TOO_NEW = (99, 32767)


@probe(
    "P02",
    "ApiVersions in a version that is too new is answered in v0, with error 35 and its own range",
    source="KIP-511; RequestContext.parseRequest, ApiVersionsRequest.getErrorResponse",
    asks="An answer in v0 with UNSUPPORTED_VERSION (35) that names the range of key 18.",
    example="ApiVersions v99 is answered in the form of v3, or the connection is closed",
)
async def version_too_new(probed: ProbeContext, say: ProbeReporter) -> None:
    """Send ApiVersions in versions of the future."""
    for version in _TOO_NEW:
        line = await probed.target.open_connection(authenticated=False)
        try:
            newest = probed.target.newest_version("ApiVersions")
            body = encode_request("ApiVersions", newest, CLIENT_SOFTWARE, 0)
            asked = encode_request(
                "ApiVersions", version, {}, line.next_correlation_id(), body=_request_body(body)
            )
            line.send(asked.request)
            await _check_refusal(await line.receive_response(asked), probed, say)
            again = await line.request("ApiVersions", newest, CLIENT_SOFTWARE)
            say.check(
                again.field("error_code") == 0,
                f"after the refusal, {again} on the same connection: {_response_text(again)}",
                again,
            )
        finally:
            line.close()


async def _check_refusal(said: RawExchange, probed: ProbeContext, say: ProbeReporter) -> None:
    if said.response is None:
        say.check(False, f"{said}: {said.failure}", said)
        return
    code = int.from_bytes(said.response.frame[4:6], "big", signed=True)
    if not say.check(
        code == UNSUPPORTED_VERSION,
        f"{said}: answered {response_prefix(said)}: error {code}, not 35",
        said,
    ):
        return
    in_v0 = said.response.api_version == 0 and said.response.body is not None
    if not say.check(
        in_v0 and not said.response.problems,
        f"{said}: the answer {response_prefix(said)} is not in the form of v0",
        said,
    ):
        return
    told = {each.api_key: (each.min_version, each.max_version) for each in said.field("api_keys")}
    say.check(
        told.get(API_VERSIONS) == probed.target.offered.get(API_VERSIONS, told),
        f"{said}: the answer names {told.get(API_VERSIONS)} for key 18, not the range on offer",
        said,
        "api_keys",
    )


@probe(
    "P03",
    "ApiVersions tells the same in each version",
    source="KIP-35; ApiVersionsResponse.json",
    asks="Each key once, with 0 <= min_version <= max_version, key 18 among them, always alike.",
    example="v0 lists Fetch 0-11, v3 lists Fetch 4-11",
)
async def same_ranges(probed: ProbeContext, say: ProbeReporter) -> None:
    """Compare the responses of all versions."""
    for version in probed.target.versions("ApiVersions"):
        said = await probed.target.request("ApiVersions", CLIENT_SOFTWARE, version)
        if not say.check_readable(said):
            continue
        listed = [(k.api_key, k.min_version, k.max_version) for k in said.field("api_keys")]
        keys = [key for key, _, _ in listed]
        twice = sorted({key for key in keys if keys.count(key) > 1})
        say.check(not twice, f"{said}: lists keys {twice} more than once", said, "api_keys")
        upside_down = [each for each in listed if not 0 <= each[1] <= each[2]]
        say.check(
            not upside_down,
            f"{said}: lists what is no range: (key, lowest, highest) {upside_down}",
            said,
            "api_keys",
        )
        say.check(API_VERSIONS in keys, f"{said}: does not list key 18", said, "api_keys")
        offered = {key: (low, high) for key, low, high in listed}
        other = {
            key: (offered.get(key), bounds)
            for key, bounds in probed.target.offered.items()
            if offered.get(key) != bounds
        }
        say.check(not other, f"{said}: tells other ranges: {other}", said, "api_keys")


@probe(
    "P04",
    "A client software name that is no name is refused",
    source="KIP-511; ApiVersionsRequest.isValid",
    asks="INVALID_REQUEST (42) where name or version has other characters than [a-zA-Z0-9.-].",
    example="client_software_name '-kafka shark-' is answered with error 0",
)
async def invalid_software_name(probed: ProbeContext, say: ProbeReporter) -> None:
    """Send invalid software names and versions."""
    version = probed.target.newest_version("ApiVersions", since=3)
    for name, number in (("-kafka shark-", "1"), ("", "1"), ("kafkashark", "one/two")):
        line = await probed.target.open_connection(authenticated=False)
        try:
            fields = {"client_software_name": name, "client_software_version": number}
            said = await line.request("ApiVersions", version, fields)
            say.check_error(said, "error_code", "INVALID_REQUEST")
        finally:
            line.close()


def _request_body(said: RawExchange) -> bytes:
    """Return the body of an ApiVersions request, whatever its header."""
    head = encode_request("ApiVersions", said.version, {}, said.correlation_id, body=b"")
    return said.request[len(head.request) :]


def _response_text(said: RawExchange) -> str:
    return said.failure or f"answered {response_prefix(said)}"
