"""aiokafka: producers."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from aiokafka import AIOKafkaProducer

from tools.record.scenario import PATIENCE_S, Mock, Stage, orders, scenario


def run(play: Coroutine[Any, Any, None]) -> None:
    """Play it, but not for ever."""
    asyncio.run(asyncio.wait_for(play, 2 * PATIENCE_S))


@scenario(
    "aiokafka-produce-codecs",
    "Produce with every codec and with acks 0 (answered by the mock cluster, which it should not)",
    client="aiokafka",
    cluster=Mock(),
)
def produce_codecs(stage: Stage) -> None:
    run(_produce_codecs(stage))


async def _produce_codecs(stage: Stage) -> None:
    for codec, acks in (
        (None, 0),
        (None, 1),
        ("gzip", 1),
        ("snappy", 1),
        ("lz4", "all"),
        ("zstd", -1),
    ):
        settings = {"compression_type": codec, "acks": acks, "linger_ms": 30}
        async with AIOKafkaProducer(
            bootstrap_servers=stage.bootstrap, client_id=f"aiokafka-{codec}", **settings
        ) as sender:
            headers = [("codec", str(codec).encode())]
            sent = [
                await sender.send(stage.topic(), value, key, partition=0, headers=headers)
                for key, value in orders(8)
            ]
            await asyncio.gather(*sent)
