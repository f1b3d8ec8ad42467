from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from dissector.protocol.apis import api
from dissector.protocol.messages import decode_request
from tests.default_frames import response
from tools.record.sweep.bodies import body_of
from tools.record.sweep.client import DisagreementError, SweepClient

API_VERSIONS, HEARTBEAT, METADATA = 18, 12, 3


class Broker:
    """Answers ApiVersions correctly, Heartbeat as given; closes the connection otherwise."""

    def __init__(self, listener: socket.socket) -> None:
        self.listener = listener
        self.address = f"127.0.0.1:{listener.getsockname()[1]}"
        self.cut, self.extra = 0, b""
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            while size := stream.read(4):
                request = decode_request(stream.read(int.from_bytes(size, "big")))
                answer = self._answer(request.api_key, request.api_version, request.correlation_id)
                if answer is None:
                    return
                connection.sendall(len(answer).to_bytes(4, "big") + answer)

    def _answer(self, key: int | None, version: int | None, number: int | None) -> bytes | None:
        assert version is not None
        assert number is not None
        if key == API_VERSIONS:
            offered = [(HEARTBEAT, 0, 99), (METADATA, 3, 4)]
            keys = [{"api_key": k, "min_version": a, "max_version": b} for k, a, b in offered]
            return response(key, version, number, api_keys=keys)[4:]
        if key != HEARTBEAT:
            return None
        frame = response(key, version, number)[4:]
        return frame[: len(frame) - self.cut] + self.extra


@pytest.fixture
def broker() -> Iterator[Broker]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield Broker(listener)
        listener.shutdown(socket.SHUT_RDWR)


def test_only_declared_and_offered_versions_are_sent(broker: Broker) -> None:
    with SweepClient(broker.address) as speaker:
        assert list(speaker.versions(HEARTBEAT)) == [0, 1, 2, 3, 4]
        assert list(speaker.versions(METADATA)) == [3, 4]
        assert list(speaker.versions(77)) == []
        speaker.every(HEARTBEAT, group_id="g", group_instance_id="i")
        assert {(HEARTBEAT, version) for version in range(5)} <= speaker.answered


def test_a_closed_connection_costs_one_api_only(
    broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    with SweepClient(broker.address) as speaker:
        assert speaker.newest(METADATA) is None
        assert speaker.newest(HEARTBEAT) is not None
        assert speaker.unanswered == {(METADATA, 4): "the broker closed the connection"}
    assert "Metadata v4" in capsys.readouterr().err


def test_an_undecodable_response_fails_the_sweep(broker: Broker) -> None:
    broker.extra = b"\x00"
    with (
        pytest.raises(DisagreementError, match="1 bytes are left over"),
        SweepClient(broker.address) as speaker,
    ):
        speaker.newest(HEARTBEAT)


def test_an_undeclared_tagged_field_fails_the_sweep(broker: Broker) -> None:
    broker.cut, broker.extra = 1, b"\x01\x63\x01\xff"  # one field, tag 99, one byte
    with (
        pytest.raises(DisagreementError, match="not declared"),
        SweepClient(broker.address) as speaker,
    ):
        speaker.newest(HEARTBEAT)


def test_bodies_have_the_fields_of_their_version() -> None:
    heartbeat = api(HEARTBEAT)
    assert heartbeat is not None
    fields = {"group_id": "g", "generation_id": 7, "group_instance_id": "i"}
    assert body_of(heartbeat.request, 0, fields) == b"\0\1g" + b"\0\0\0\7" + b"\0\0"
    assert body_of(heartbeat.request, 3, fields) == b"\0\1g" + b"\0\0\0\7" + b"\0\0" + b"\0\1i"


def test_null_becomes_zero_in_non_nullable_fields() -> None:
    metadata = api(METADATA)
    assert metadata is not None
    assert body_of(metadata.request, 0, {"topics": None}) == b"\0\0\0\0"
    assert body_of(metadata.request, 1, {"topics": None}) == b"\xff\xff\xff\xff"


def test_an_unknown_field_is_an_error() -> None:
    heartbeat = api(HEARTBEAT)
    assert heartbeat is not None
    with pytest.raises(AssertionError, match="no_such"):
        body_of(heartbeat.request, 0, {"no_such": 1})
