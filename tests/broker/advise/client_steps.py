"""The steps of programs, for clients of Python: `python -m ...client_steps CLIENT PLANS.json`."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

AT_ONCE = 24
TEXT = '{"state": "accepted", "items": 3, "currency": "EUR", "customer": "the same again"} '

_NEVER = threading.Event()


class Producer(Protocol):
    """A producer; `flush` and the ends of transactions raise what the client reports."""

    def send(self, topic: str, value: bytes, key: bytes | None, partition: int | None) -> None: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...
    def init(self) -> None: ...
    def begin(self) -> None: ...
    def commit(self) -> None: ...


class Consumer(Protocol):
    """A consumer; `poll` returns partition and offset of records."""

    def subscribe(self, topic: str) -> None: ...
    def assign(self, topic: str, partition: int, offset: int) -> None: ...
    def poll(self, seconds: float) -> list[tuple[int, int]]: ...
    def is_assigned(self) -> bool: ...
    def commit(self, topic: str, partition: int, offset: int) -> None: ...
    def close(self) -> None: ...


class Asker(Protocol):
    """A client that asks for metadata: of a topic, or of all."""

    def ask(self, topic: str | None) -> None: ...
    def close(self) -> None: ...


class Client(Protocol):
    """A module that makes clients from settings."""

    def producer(self, settings: dict[str, Any]) -> Producer: ...
    def consumer(self, settings: dict[str, Any]) -> Consumer: ...
    def asker(self, settings: dict[str, Any]) -> Asker: ...


class Steps:
    """Takes the steps of one program."""

    def __init__(self, client: Client, program: dict[str, Any], brokers: dict[str, str]) -> None:
        self._client, self._name = client, program["name"]
        listener = program["common"].get("security.protocol", "PLAINTEXT")
        common = {"bootstrap.servers": brokers[listener], "client.id": self._name}
        self._common = {**common, **program["common"]}
        sent = {"compression.type": "zstd", "linger.ms": 20, "enable.idempotence": True}
        self._producing = {**self._common, "acks": "all", **sent, **program["producer"]}
        read = {"group.id": self._name, "auto.offset.reset": "earliest"}
        self._consuming = {**self._common, **read, **program["consumer"]}
        self._steps = program["steps"]
        self._kept: list[Any] = []

    def run(self) -> None:
        """Take all steps."""
        for name, given in self._steps:
            getattr(self, name)(**given)

    def produce(
        self,
        count: int,
        each: int = 0,
        pause_ms: float = 0,
        size: int = 100,
        keys: int = 0,
        hot: int = 0,
        skew: int = 0,
        topic: str | None = None,
        anew: bool = False,
    ) -> None:
        """
        Send `count` records, and wait for the answers after `each` so many, then `pause_ms`.

        `keys` different keys, one on `hot` of ten records; `skew` of ten records to partition 0;
        with `anew` by a new producer after each wait.
        """
        producer = None
        for at in range(count):
            producer = producer or self._client.producer(self._producing)
            key = b"key-%d" % (at % keys) if keys else None
            key = b"hot" if at % 10 < hot else key
            value = (f"{at} " + TEXT * (size // len(TEXT) + 1))[:size].encode()
            with suppress(Exception):  # a mistake is made again and again
                producer.send(topic or self._name, value, key, 0 if at % 10 < skew else None)
            if each and (at + 1) % each == 0:
                with suppress(Exception):
                    producer.flush()
                if anew:
                    producer.close()
                    producer = None
                _NEVER.wait(pause_ms / 1000)
        if producer:
            with suppress(Exception):
                producer.flush()
            with suppress(Exception):
                producer.close()

    def consume(
        self,
        seconds: float,
        commit: int = 0,
        pause_ms: float = 0,
        offset: int | None = None,
        stall_s: float = 0,
    ) -> None:
        """
        Read for so long, and commit after so many records.

        With `offset` from there, without a group; once, after the first records, no poll for
        `stall_s`.
        """
        settings = {**self._consuming, **({"enable.auto.commit": False} if commit else {})}
        found: list[tuple[int, int]] = []
        if offset is None:
            consumer, found = self._reading(settings)
        else:
            consumer = self._client.consumer(settings)
            consumer.assign(self._name, 0, offset)
        end, got = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            for partition, at in found:
                got += 1
                _NEVER.wait(pause_ms / 1000)
                if commit and got % commit == 0:
                    consumer.commit(self._name, partition, at + 1)
            if got and stall_s:
                _NEVER.wait(stall_s)
                stall_s = 0
            found = consumer.poll(0.3)
        consumer.close()

    def _reading(self, settings: dict[str, Any]) -> tuple[Consumer, list[tuple[int, int]]]:
        """Return a consumer of the group, and its first records."""
        for _ in range(4):
            consumer = self._client.consumer(settings)
            consumer.subscribe(self._name)
            end = time.monotonic() + 5
            while time.monotonic() < end:
                if found := consumer.poll(0.3):
                    return consumer, found
            # kafka-python 3.0 at times sends nothing at all after it has joined.
            consumer.close()
        raise TimeoutError("no records")

    def ask(
        self, times: int, pause_ms: float = 0, anew: bool = False, is_all: bool = False
    ) -> None:
        """Ask for metadata again and again, with `anew` by a new client each time."""
        asker = None
        for _ in range(times):
            asker = asker or self._client.asker(self._common)
            asker.ask(None if is_all else self._name)
            if anew:
                asker.close()
                asker = None
            _NEVER.wait(pause_ms / 1000)
        if asker:
            asker.close()

    def transact(self, times: int, is_ended: bool) -> None:
        """Write in transactions; one that is not ended stays open until this process is killed."""
        producer = self._client.producer({**self._producing, "transactional.id": self._name})
        producer.init()
        for _ in range(times):
            producer.begin()
            producer.send(self._name, b"amount", None, None)
            producer.flush()
            if is_ended:
                producer.commit()
        if is_ended:
            producer.close()
        self._kept.append(producer)

    def rivals(self, rounds: int, is_same: bool) -> None:
        """Write in transactions with two producers, of the same transactional id or not."""
        for number in range(rounds):
            name = f"{self._name}-{number}"
            first = self._client.producer({**self._producing, "transactional.id": name})
            first.init()
            first.begin()
            first.send(self._name, b"amount", None, None)
            first.flush()
            other = name if is_same else f"{name}-other"
            second = self._client.producer({**self._producing, "transactional.id": other})
            second.init()
            with suppress(Exception):
                first.send(self._name, b"amount", None, None)
                first.flush()
            with suppress(Exception):
                first.commit()
            for each in (second, first):
                with suppress(Exception):
                    each.close()

    def rejoin(self, rounds: int, seconds: float) -> None:
        """Two members of a group, one of which leaves and joins again in each round."""
        end = time.monotonic() + seconds
        first = self._client.consumer(self._consuming)
        first.subscribe(self._name)
        for number in range(rounds):
            second = self._client.consumer(self._consuming)
            second.subscribe(self._name)
            while not second.is_assigned():
                first.poll(0.1)
                second.poll(0.1)
            is_last = number == rounds - 1
            while is_last and time.monotonic() < end:
                first.poll(0.1)
                second.poll(0.1)
            second.close()
        first.close()

    def expelled(self, rounds: int, is_expelled: bool) -> None:
        """Commit as a member of a group, from which somebody else removed it before."""
        consumer = self._client.consumer({**self._consuming, "enable.auto.commit": False})
        consumer.subscribe(self._name)
        for number in range(rounds):
            end = time.monotonic() + 2
            while time.monotonic() < end or not consumer.is_assigned():
                consumer.poll(0.1)
            if is_expelled:
                _expel(self._common["bootstrap.servers"], self._name)
            with suppress(Exception):
                consumer.commit(self._name, 0, 5 * number + 5)
        with suppress(Exception):
            consumer.close()


def _expel(bootstrap: str, group: str) -> None:
    """Remove all members of a group, as an operator does."""
    from kafka import KafkaAdminClient
    from kafka.admin import MemberToRemove

    admin = KafkaAdminClient(bootstrap_servers=bootstrap.split(","), client_id="operator")
    members = admin.describe_groups([group])[group]["members"]
    gone = [MemberToRemove(member_id=each["member_id"]) for each in members]
    admin.remove_group_members(group, gone)
    admin.close()


def main(client_name: str, path: str) -> None:
    """Run all programs of a file, and end without closing what they left open."""
    module: Any = import_module(f"tests.broker.advise.{client_name.replace('-', '_')}_client")
    given = json.loads(Path(path).read_text("utf-8"))
    failed: list[str] = []

    def run(program: dict[str, Any]) -> None:
        begin = time.monotonic()
        try:
            Steps(module, program, given["brokers"]).run()
        except Exception as error:  # the others go on
            failed.append(f"{program['name']}: {type(error).__name__}: {error}")
        print(f"{program['name']}: {time.monotonic() - begin:.1f} s", flush=True)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(run, given["programs"]))
    print("\n".join(failed), file=sys.stderr, flush=True)
    os._exit(1 if failed else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
