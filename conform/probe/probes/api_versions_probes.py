"""Probes of ApiVersions."""

from __future__ import annotations

from conform.probe.probe_registry import Probed, probe
from conform.probe.probe_reporter import LiveSay, start_of
from conform.probe.probe_target import ABOUT
from conform.probe.raw_exchange import Said, request_frame
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
async def too_new(probed: Probed, say: LiveSay) -> None:
    """Send ApiVersions in versions of the future."""
    for version in _TOO_NEW:
        line = await probed.target.line(authenticated=False)
        try:
            newest = probed.target.newest("ApiVersions")
            body = request_frame("ApiVersions", newest, ABOUT, 0)
            asked = request_frame("ApiVersions", version, {}, line.next_id(), body=_body_of(body))
            line.send(asked.request)
            await _judge_refusal(await line.hear(asked), probed, say)
            again = await line.ask("ApiVersions", newest, ABOUT)
            say.holds(
                again.at("error_code") == 0,
                f"after the refusal, {again} on the same connection: {_short(again)}",
                again,
            )
        finally:
            line.close()


async def _judge_refusal(said: Said, probed: Probed, say: LiveSay) -> None:
    if said.answer is None:
        say.holds(False, f"{said}: {said.nothing}", said)
        return
    code = int.from_bytes(said.answer.frame[4:6], "big", signed=True)
    if not say.holds(
        code == UNSUPPORTED_VERSION,
        f"{said}: answered {start_of(said)}: error {code}, not 35",
        said,
    ):
        return
    in_v0 = said.answer.api_version == 0 and said.answer.body is not None
    if not say.holds(
        in_v0 and not said.answer.problems,
        f"{said}: the answer {start_of(said)} is not in the form of v0",
        said,
    ):
        return
    told = {each.api_key: (each.min_version, each.max_version) for each in said.at("api_keys")}
    say.holds(
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
async def same_in_each(probed: Probed, say: LiveSay) -> None:
    """Compare the responses of all versions."""
    for version in probed.target.versions("ApiVersions"):
        said = await probed.target.ask("ApiVersions", ABOUT, version)
        if not say.answers(said):
            continue
        listed = [(k.api_key, k.min_version, k.max_version) for k in said.at("api_keys")]
        keys = [key for key, _, _ in listed]
        twice = sorted({key for key in keys if keys.count(key) > 1})
        say.holds(not twice, f"{said}: lists keys {twice} more than once", said, "api_keys")
        upside_down = [each for each in listed if not 0 <= each[1] <= each[2]]
        say.holds(
            not upside_down,
            f"{said}: lists what is no range: (key, lowest, highest) {upside_down}",
            said,
            "api_keys",
        )
        say.holds(API_VERSIONS in keys, f"{said}: does not list key 18", said, "api_keys")
        offered = {key: (low, high) for key, low, high in listed}
        other = {
            key: (offered.get(key), bounds)
            for key, bounds in probed.target.offered.items()
            if offered.get(key) != bounds
        }
        say.holds(not other, f"{said}: tells other ranges: {other}", said, "api_keys")


@probe(
    "P04",
    "A client software name that is no name is refused",
    source="KIP-511; ApiVersionsRequest.isValid",
    asks="INVALID_REQUEST (42) where name or version has other characters than [a-zA-Z0-9.-].",
    example="client_software_name '-kafka shark-' is answered with error 0",
)
async def bad_name(probed: Probed, say: LiveSay) -> None:
    """Send invalid software names and versions."""
    version = probed.target.newest("ApiVersions", since=3)
    for name, number in (("-kafka shark-", "1"), ("", "1"), ("kafkashark", "one/two")):
        line = await probed.target.line(authenticated=False)
        try:
            fields = {"client_software_name": name, "client_software_version": number}
            said = await line.ask("ApiVersions", version, fields)
            say.error(said, "error_code", "INVALID_REQUEST")
        finally:
            line.close()


def _body_of(said: Said) -> bytes:
    """Return the body of an ApiVersions request, whatever its header."""
    head = request_frame("ApiVersions", said.version, {}, said.correlation_id, body=b"")
    return said.request[len(head.request) :]


def _short(said: Said) -> str:
    return said.nothing or f"answered {start_of(said)}"
