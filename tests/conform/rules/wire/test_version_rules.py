"""Rules V: scenes that break and keep each rule."""

from __future__ import annotations

from dissector.protocol.headers import ResponseHeader
from tests.conform.scene import Scene, SceneConnection, breaks, broken, keeps
from tests.default_frames import sized
from tests.dissector.cli.cli_traffic import request_frame, response_frame

METADATA, API_VERSIONS = 3, 18
SOFTWARE = {"client_software_name": "test-client", "client_software_version": "1.0"}
OFFER = [
    {"api_key": METADATA, "max_version": 12},
    {"api_key": API_VERSIONS, "max_version": 4},
]


def _negotiated(version: int = 3, **values: object) -> SceneConnection:
    """Return a connection after an ApiVersions exchange."""
    connection = (
        Scene().connect().request(API_VERSIONS, version, 1, **(SOFTWARE if version >= 3 else {}))
    )
    return connection.response(API_VERSIONS, version, 1, **{"api_keys": OFFER} | values)


def _metadata(connection: SceneConnection, version: int, number: int = 2) -> Scene:
    return (
        connection.request(METADATA, version, number, topics=None)
        .response(METADATA, version, number)
        .scene
    )


@keeps("F14")
@keeps("F15")
@keeps("F17")
@keeps("V02")
@keeps("V03")
@keeps("V04")
@keeps("V05")
def offered_version() -> Scene:
    return _metadata(_negotiated(), 12)


@breaks("F14", "F17")
def newer_than_offered() -> Scene:
    return _metadata(_negotiated(), 13)


@breaks("F14", "F17")
def not_offered_at_all() -> Scene:
    return _metadata(_negotiated(api_keys=OFFER[1:]), 12)


def test_requests_before_the_api_versions_response_are_not_judged() -> None:
    connection = (
        Scene()
        .connect()
        .request(API_VERSIONS, 3, 1, **SOFTWARE)
        .request(METADATA, 13, 2, topics=None)
    )
    connection.response(API_VERSIONS, 3, 1, api_keys=OFFER).response(METADATA, 13, 2)
    verdict = connection.scene.judge()
    assert broken(verdict) == []
    assert not verdict.tallies["F14"].judged


@breaks("F15")
def begins_with_metadata() -> Scene:
    return _metadata(Scene().connect(), 9)


def _refused(version: int, keys: list[dict[str, int]]) -> Scene:
    """Return a request in a too new version, and its refusal."""
    connection = Scene().connect().request(API_VERSIONS, 4, 1, **SOFTWARE)
    rest = response_frame(API_VERSIONS, version, 1, error_code=35, api_keys=keys)[8:]
    connection.broker(sized(ResponseHeader.codec(0).build({"correlation_id": 1}) + rest))
    return connection.scene


@keeps("V01")
def refused_in_version_0() -> Scene:
    return _refused(0, [{"api_key": API_VERSIONS, "max_version": 3}])


@breaks("V01")
def refused_in_its_own_version() -> Scene:
    return _refused(4, [{"api_key": API_VERSIONS, "max_version": 3}])


@breaks("V01")
def refused_without_a_range() -> Scene:
    return _refused(0, [])


@breaks("V01")
def refused_though_offered() -> Scene:
    return _refused(0, [{"api_key": API_VERSIONS, "max_version": 4}])


@breaks("V01")
def refused_with_more_than_api_versions() -> Scene:
    return _refused(0, [OFFER[0], {"api_key": API_VERSIONS, "max_version": 3}])


@breaks("V02")
def lowest_above_highest() -> Scene:
    return _negotiated(
        api_keys=[{"api_key": METADATA, "min_version": 5, "max_version": 3}, OFFER[1]]
    ).scene


@breaks("V02")
def one_api_twice() -> Scene:
    return _negotiated(api_keys=[*OFFER, OFFER[0]]).scene


@breaks("V02")
def api_versions_is_not_offered() -> Scene:
    return _negotiated(api_keys=OFFER[:1]).scene


@breaks("V03")
def name_with_a_space() -> Scene:
    connection = Scene().connect()
    connection.request(
        API_VERSIONS, 3, 1, client_software_name="my client", client_software_version="1"
    )
    return connection.response(API_VERSIONS, 3, 1, error_code=42).scene


@breaks("V04")
def feature_from_0_on_for_an_old_client() -> Scene:
    features = [{"name": "kraft.version", "min_version": 0, "max_version": 1}]
    return _negotiated(supported_features=features).scene


@keeps("V04")
def feature_from_0_on_for_a_new_client() -> Scene:
    features = [{"name": "kraft.version", "min_version": 0, "max_version": 1}]
    return _negotiated(4, supported_features=features).scene


def _epochs(*epochs: int) -> Scene:
    connection = _negotiated(finalized_features_epoch=epochs[0])
    for number, epoch in enumerate(epochs[1:], 2):
        connection.request(API_VERSIONS, 3, number, **SOFTWARE)
        connection.response(API_VERSIONS, 3, number, api_keys=OFFER, finalized_features_epoch=epoch)
    return connection.scene


@keeps("V05")
def epoch_rises() -> Scene:
    return _epochs(3, 7, -1, 7)


@breaks("V05")
def epoch_goes_down() -> Scene:
    return _epochs(7, 5)


@breaks("V05")
def epoch_is_invalid() -> Scene:
    return _epochs(-2)


@breaks("F17", "F14")
def an_unknown_api_is_answered() -> Scene:
    connection = _negotiated().client(sized(b"\x01\xf4\0\0\0\0\0\x02\0\0"))
    return connection.broker(sized(b"\0\0\0\x02\0\0")).scene


@breaks("V01")
def refused_in_version_3() -> Scene:
    frame = request_frame(API_VERSIONS, 3, 1, **SOFTWARE)
    connection = Scene().connect().client(frame[:7] + b"\x63" + frame[8:])
    keys = [{"api_key": API_VERSIONS, "max_version": 4}]
    return connection.response(API_VERSIONS, 3, 1, error_code=35, api_keys=keys).scene


@breaks("V02")
def a_negative_key() -> Scene:
    return _negotiated(api_keys=[{"api_key": -3, "max_version": 1}, *OFFER]).scene


def _features(least: int, most: int, level: int) -> Scene:
    supported = [{"name": "x", "min_version": least, "max_version": most}]
    finalized = [{"name": "x", "min_version_level": 1, "max_version_level": level}]
    return _negotiated(supported_features=supported, finalized_features=finalized).scene


@keeps("V07")
def finalized_as_supported() -> Scene:
    return _features(1, 9, 9)


@breaks("V07")
def finalized_above_what_is_supported() -> Scene:
    return _features(1, 9, 12)


@breaks("V07")
def supported_backwards() -> Scene:
    return _features(9, 1, 1)
