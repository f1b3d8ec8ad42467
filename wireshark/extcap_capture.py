"""What Wireshark captures at our interfaces: packets as pcapng, into the pipe that it reads."""

from __future__ import annotations

import os
import select
import signal
import sys
from argparse import Namespace
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Thread

import numpy as np

from dissector.capture.columns import Bytes
from dissector.capture.formats.byte_source import ByteSource
from dissector.capture.formats.conversions import Conversions, Converted
from dissector.capture.formats.growing_file import GrowingFile
from dissector.errors import UsageError
from dissector.request_log import log_converter as log_converter  # registers itself
from dissector.view.text.escape import escaped

_BLOCK_BYTES = 1 << 16


def end_with_reader(pipe: int) -> None:
    """Send this process SIGTERM, as Wireshark does at the end, once nobody reads a pipe."""

    def watch() -> None:
        poll = select.poll()
        poll.register(pipe, 0)  # an error is reported unasked
        poll.poll()
        os.kill(os.getpid(), signal.SIGTERM)

    Thread(target=watch, name="extcap", daemon=True).start()


def capture_log(given: Namespace, fifo: Path) -> int:
    """
    Write the messages of a request log as packets; wait for more at its end, unless `once`.

    Raises:
        UsageError: It is no request log, or can't be read.
    """
    name = given.log
    if not name:
        raise UsageError("--log: choose a request log")
    conversions = Conversions(given.timezone or "UTC")
    is_growing = not given.once and Path(name).is_file()
    source = ByteSource(name, inputs={name: GrowingFile(name)} if is_growing else None)
    with closing(source), fifo.open("wb", buffering=0) as pipe:
        end_with_reader(pipe.fileno())
        log = _log(source, conversions)
        if log is None:
            raise UsageError(f"{name}: this is no request log (kafka.request.logger)")
        with closing(log.open()) as packets:
            while block := packets.read(_BLOCK_BYTES):
                for _, problem in conversions.take_problems():
                    say(f"{name}: {problem.what}")
                pipe.write(block)
        for _, problem in conversions.take_problems():
            say(f"{name}: {problem.what}")
    return 0


def _log(source: ByteSource, conversions: Conversions) -> Converted | None:
    """Return the capture of a log, once it has a first line."""
    head: Bytes = np.empty(_BLOCK_BYTES, np.uint8)
    while not source.ended:
        if filled := source.fill(head):
            return conversions.of_stream(source, head[:filled].tobytes())
    return None


def capture_proxy(given: Namespace, fifo: Path) -> int:
    """
    Record what passes between clients and a cluster, as `kafkashark record` does.

    Raises:
        UsageError: There is no address of a cluster.
    """
    if not given.to:
        raise UsageError("--to: the address of a broker is missing, as in broker:9092")
    words = ["record", "--to", given.to, "--listen", given.listen, "-o", str(fifo)]
    if given.tls:
        words.append("--tls")
    if given.sasl not in ("", "none"):
        words += ["--sasl", given.sasl]
    for name, value in (
        ("-Y", given.filter),
        ("--tls-ca", given.tls_ca),
        ("--sasl-user", given.sasl_user),
        ("--sasl-secret", given.sasl_secret),
    ):
        if value:
            words += [name, value]
    from dissector.cli import main

    with fifo.open("wb", buffering=0) as pipe:
        end_with_reader(pipe.fileno())
        return main(words)


CAPTURES: dict[str, Callable[[Namespace, Path], int]] = {
    "kafkalog": capture_log,
    "kafkaproxy": capture_proxy,
}
"""By the names of interfaces."""


def say(text: str) -> None:
    """Write a line for Wireshark's window of messages."""
    print("kafkashark:", escaped(text), file=sys.stderr, flush=True)
