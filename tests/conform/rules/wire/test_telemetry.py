"""Rules O: scenes that break and keep each rule."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from tests.conform.scene import Scene, SceneExchange, breaks, keeps, scene_of

SUBSCRIPTIONS, PUSH = 71, 72
NONE, MINE, OTHER = UUID(int=0), UUID(int=5), UUID(int=6)


def _subscribes(requested_id: UUID = NONE, returned_id: UUID = MINE) -> SceneExchange:
    answer = {"client_instance_id": returned_id, "subscription_id": 9, "push_interval_ms": 1000}
    answer |= {"accepted_compression_types": [1], "telemetry_max_bytes": 10}
    return SUBSCRIPTIONS, 0, {"client_instance_id": requested_id}, answer


def _pushes(error: int = 0, **request: Any) -> SceneExchange:
    usual = {"client_instance_id": MINE, "subscription_id": 9, "metrics": b"1234"}
    return PUSH, 0, usual | request, {"error_code": error}


@keeps("O01")
@keeps("O02")
def pushes_as_subscribed() -> Scene:
    return scene_of(_subscribes(), _pushes(compression_type=1), _subscribes(MINE), _pushes())


@breaks("O01")
def is_given_another_id() -> Scene:
    return scene_of(_subscribes(OTHER))


@breaks("O02")
def another_subscription() -> Scene:
    return scene_of(_subscribes(), _pushes(subscription_id=7))


@breaks("O02")
def another_client() -> Scene:
    return scene_of(_subscribes(), _pushes(client_instance_id=OTHER))


@breaks("O02")
def another_compression() -> Scene:
    return scene_of(_subscribes(), _pushes(76, compression_type=4))


@breaks("O02")
def payload_above_the_limit() -> Scene:
    return scene_of(_subscribes(), _pushes(118, metrics=bytes(11)))
