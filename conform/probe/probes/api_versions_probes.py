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
    "ApiVersions in an unsupported version not answered in v0 with error 35",
    source="KIP-511; RequestContext.parseRequest, ApiVersionsRequest.getErrorResponse",
    asks="A response in v0 with UNSUPPORTED_VERSION (35) and the version range of key 18.",
    example="ApiVersions v99 is answered in the format of v3, or the connection is closed",
)
async def probe_version_too_new(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Send ApiVersions in future versions."""
    for version in _TOO_NEW:
        connection = await context.target.open_connection(authenticated=False)
        try:
            newest = context.target.newest_version("ApiVersions")
            template = encode_request("ApiVersions", newest, CLIENT_SOFTWARE, 0)
            exchange = encode_request(
                "ApiVersions",
                version,
                {},
                connection.next_correlation_id(),
                body=_request_body(template),
            )
            connection.send(exchange.request)
            await _check_rejection(await connection.receive_response(exchange), context, reporter)
            repeated = await connection.request("ApiVersions", newest, CLIENT_SOFTWARE)
            found = f"{repeated} on the same connection: {_response_text(repeated)}"
            is_right = repeated.field("error_code") == 0
            reporter.check(is_right, f"after the rejection, {found}", repeated)
        finally:
            connection.close()


async def _check_rejection(
    exchange: RawExchange, context: ProbeContext, reporter: ProbeReporter
) -> None:
    if exchange.response is None:
        reporter.check(False, f"{exchange}: {exchange.failure}", exchange)
        return
    code = int.from_bytes(exchange.response.frame[4:6], "big", signed=True)
    if not reporter.check(
        code == UNSUPPORTED_VERSION,
        f"{exchange}: answered {response_prefix(exchange)}: error {code}, not 35",
        exchange,
    ):
        return
    in_v0 = exchange.response.api_version == 0 and exchange.response.body is not None
    if not reporter.check(
        in_v0 and not exchange.response.problems,
        f"{exchange}: the response {response_prefix(exchange)} is not in the format of v0",
        exchange,
    ):
        return
    ranges = {
        each.api_key: (each.min_version, each.max_version) for each in exchange.field("api_keys")
    }
    own_range = ranges.get(API_VERSIONS)
    reporter.check(
        own_range == context.target.offered.get(API_VERSIONS, ranges),
        f"{exchange}: the response has {own_range} for key 18, not the offered range",
        exchange,
        "api_keys",
    )


@probe(
    "P03",
    "Invalid or different version ranges in ApiVersions responses",
    source="KIP-35; ApiVersionsResponse.json",
    asks="Each key once, with 0 <= min_version <= max_version, including key 18, and the same "
    "ranges in each version.",
    example="v0 lists Fetch 0-11, v3 lists Fetch 4-11",
)
async def probe_same_ranges(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Compare the responses of all versions."""
    for version in context.target.versions("ApiVersions"):
        exchange = await context.target.request("ApiVersions", CLIENT_SOFTWARE, version)
        if not reporter.check_readable(exchange):
            continue
        listed = [(k.api_key, k.min_version, k.max_version) for k in exchange.field("api_keys")]
        keys = [key for key, _, _ in listed]
        repeated = sorted({key for key in keys if keys.count(key) > 1})
        reporter.check(
            not repeated, f"{exchange}: lists keys {repeated} more than once", exchange, "api_keys"
        )
        invalid = [each for each in listed if not 0 <= each[1] <= each[2]]
        reporter.check(
            not invalid,
            f"{exchange}: lists invalid ranges: (key, lowest, highest) {invalid}",
            exchange,
            "api_keys",
        )
        reporter.check(
            API_VERSIONS in keys, f"{exchange}: does not list key 18", exchange, "api_keys"
        )
        offered = {key: (low, high) for key, low, high in listed}
        different = {
            key: (offered.get(key), bounds)
            for key, bounds in context.target.offered.items()
            if offered.get(key) != bounds
        }
        reporter.check(
            not different, f"{exchange}: lists other ranges: {different}", exchange, "api_keys"
        )


@probe(
    "P04",
    "Invalid client software name accepted",
    source="KIP-511; ApiVersionsRequest.isValid",
    asks="INVALID_REQUEST (42) where name or version contains other characters than [a-zA-Z0-9.-].",
    example="client_software_name '-kafka shark-' is answered with error 0",
)
async def probe_invalid_software_name(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Send invalid software names and versions."""
    version = context.target.newest_version("ApiVersions", since=3)
    for name, number in (("-kafka shark-", "1"), ("", "1"), ("kafkashark", "one/two")):
        connection = await context.target.open_connection(authenticated=False)
        try:
            fields = {"client_software_name": name, "client_software_version": number}
            exchange = await connection.request("ApiVersions", version, fields)
            reporter.check_error(exchange, "error_code", "INVALID_REQUEST")
        finally:
            connection.close()


def _request_body(exchange: RawExchange) -> bytes:
    """Return the body of an ApiVersions request for any header version."""
    without_body = encode_request(
        "ApiVersions", exchange.version, {}, exchange.correlation_id, body=b""
    )
    return exchange.request[len(without_body.request) :]


def _response_text(exchange: RawExchange) -> str:
    return exchange.failure or f"answered {response_prefix(exchange)}"
