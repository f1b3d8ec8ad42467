"""A program that runs while its traffic is recorded."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Sequence

from dissector.errors import UsageError

BOOTSTRAP_VARIABLES = (
    "KAFKA_BOOTSTRAP_SERVERS",
    "BOOTSTRAP_SERVERS",
    "KAFKA_BROKERS",
    "SPRING_KAFKA_BOOTSTRAP_SERVERS",
)
"""
Environment variables for the address of the cluster: of MicroProfile, Quarkus and most images; of
configurations in the names of librdkafka and Java; of programs on sarama; of Spring Boot.
"""


_BY_SIGNAL = 128
"""Added to the number of a signal, as in the exit status of a shell."""


async def run_child(command: Sequence[str], bootstrap: str) -> int:
    """
    Run a program with the address of the listeners in its environment; return its exit status.

    The program gets Ctrl-C from the terminal as this process does. If the task is cancelled, the
    program is ended.

    Raises:
        UsageError: There is no such program.
    """
    environment = os.environ | dict.fromkeys(BOOTSTRAP_VARIABLES, bootstrap)
    try:
        child = await asyncio.create_subprocess_exec(*command, env=environment)
    except OSError as error:
        raise UsageError(f"{shlex.quote(command[0])}: {error.strerror}") from None
    try:
        status = await child.wait()
    except asyncio.CancelledError:
        if child.returncode is None:
            child.terminate()
        status = await child.wait()
    return status if status >= 0 else _BY_SIGNAL - status
