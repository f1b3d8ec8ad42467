"""The command `kafkashark serve`."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dissector.file_roles import READS, WRITES
from dissector.protocol.embedded.secrecy.credentials import mask_texts
from dissector.view.text.escape import escaped
from replay.options import reading_options
from replay.options.security_options import SecurityOptions, tell, tell_once

if TYPE_CHECKING:
    from serve.recording.served_recording import Recording
    from serve.report.serve_report import ServeReport
    from serve.server.cassette_server import CassetteServer

EXIT_MISSED = 1
_NOT_JUDGED = "L04"
"""Consumed records differ from produced ones by design."""
DEFAULT_ADDRESS = "127.0.0.1:9092"
UPSTREAM = SecurityOptions("upstream-", "--upstream")


def serve(
    captures: Annotated[
        list[str],
        typer.Argument(
            metavar="CAPTURE...",
            help="pcap or pcapng files, also compressed, in any order; - is standard input.",
            show_default=False,
        ),
        READS,
    ],
    listen: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT",
            help="Address of the first broker; the others listen on the next ports. Port 0 selects "
            "free ports. Every client that can connect can read the records of the capture.",
        ),
    ] = DEFAULT_ADDRESS,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Exit with status 1 if a request has no captured answer."),
    ] = False,
    upstream: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT[,...]",
            help="Cluster for requests without a captured answer; by default the embedded broker, "
            "with --strict an error.",
        ),
    ] = None,
    upstream_tls: Annotated[bool, UPSTREAM.tls] = False,
    upstream_tls_ca: Annotated[Path | None, UPSTREAM.tls_ca, READS] = None,
    upstream_tls_certificate: Annotated[Path | None, UPSTREAM.tls_certificate, READS] = None,
    upstream_tls_key: Annotated[Path | None, UPSTREAM.tls_key, READS] = None,
    upstream_sasl: Annotated[str, UPSTREAM.sasl] = "",
    upstream_sasl_user: Annotated[str, UPSTREAM.sasl_user] = "",
    upstream_sasl_secret: Annotated[Path | None, UPSTREAM.sasl_secret, READS] = None,
    upstream_also: Annotated[list[str] | None, UPSTREAM.also] = None,
    upstream_follow_advertised: Annotated[bool, UPSTREAM.follow_advertised] = False,
    upstream_allow_plaintext_password: Annotated[bool, UPSTREAM.allow_plaintext_password] = False,
    record: Annotated[
        str | None,
        typer.Option(
            metavar="OUT.pcapng",
            help="Write exchanges answered by the fallback, to serve beside the capture.",
        ),
        WRITES,
    ] = None,
    judge: Annotated[
        bool,
        typer.Option(
            "--conform",
            help="Check the traffic with clients against the rules of the protocol at exit; "
            "violations set exit status 1.",
        ),
    ] = False,
    latency: Annotated[
        str,
        typer.Option(
            metavar="recorded|FACTOR|none",
            help="Delay of answers: the captured latency, a multiple of it, or none.",
        ),
    ] = "none",
    faults: Annotated[
        list[Any] | None,  # pairs, for which Typer has no type
        typer.Option(
            "--fault",
            metavar="'FILTER' ERROR|delay:MS|close|truncate[,times:N]",
            parser=str,
            help="Inject a fault into requests that pass a filter, or the first N. Repeatable.",
        ),
    ] = None,
    wait_for_producers: Annotated[
        bool,
        typer.Option(
            "--wait-for-producers",
            help="Serve the records of live producers to consumers, instead of captured produced "
            "records, which are otherwise visible from the start.",
        ),
    ] = False,
    tls_certificate: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="PEM: certificate of the listeners; enables TLS."),
        READS,
    ] = None,
    tls_key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="PEM: private key of the certificate."),
        READS,
    ] = None,
    tls_ca: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="PEM: authorities; client certificates are required."),
        READS,
    ] = None,
    sasl_secret: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File with the password of clients; default: $KAFKASHARK_PASSWORD. Required for "
            "SCRAM; without it PLAIN accepts any password.",
        ),
        READS,
    ] = None,
    ports: reading_options.Ports = None,
    keylogs: reading_options.Keylogs = None,
    decode_as: reading_options.DecodeAs = None,
    keep_copies: reading_options.KeepCopies = False,
    schemas: reading_options.Schemas = None,
) -> int:
    """Answer clients as the captured brokers did, until Ctrl-C.

    Each captured broker gets a listener. A request gets the response to the equivalent captured
    request: versions, ids and times may differ.
    """
    from cluster.client.auth import Security
    from serve.fallback.chosen_fallback import chosen_fallback
    from serve.faults.fault import Fault
    from serve.recording.recording_reader import read_recording
    from serve.report.serve_report import ServeReport
    from serve.server.cassette_server import CassetteServer
    from serve.server.listener_security import login_password, tls_context
    from serve.server.serve_options import ServeOptions, parse_latency, parse_listener
    from serve.traffic.served_traffic import ServedTraffic

    host, port = parse_listener(listen)
    options = ServeOptions(
        host,
        port,
        latency=parse_latency(latency),
        is_strict=strict,
        follows_producers=wait_for_producers,
        tls=tls_context(tls_certificate, tls_key, tls_ca),
        password=login_password(sasl_secret),
        warn=tell,
    )
    security = Security.read(
        mechanism=upstream_sasl,
        username=upstream_sasl_user,
        secret_file=upstream_sasl_secret,
        tls=upstream_tls,
        authority_file=upstream_tls_ca,
        certificate_file=upstream_tls_certificate,
        key_file=upstream_tls_key,
        also=tuple(upstream_also or ()),
        follow_advertised=upstream_follow_advertised,
        allow_plaintext_password=upstream_allow_plaintext_password,
        option_prefix=UPSTREAM.prefix,
        tell=tell_once(),
    )
    fallback = chosen_fallback(upstream, security, is_strict=strict)
    found = [Fault.of(*each) for each in faults or ()]
    recording = read_recording(
        *captures, ports=ports or (), keylogs=keylogs or (), decode_as=decode_as or ()
    )
    for problem in recording.problems:
        tell(problem)
    report = ServeReport()
    with ServedTraffic(record, keeps_all=judge) as traffic, closing(recording):
        server = CassetteServer(
            recording, options, report, faults=found, fallback=fallback, observe=traffic.observe
        )
        asyncio.run(_serve(server, recording))
        return _end(report, traffic.all_path, is_strict=strict)


async def _serve(server: CassetteServer, recording: Recording) -> None:
    """Serve until SIGINT or SIGTERM."""
    loop = asyncio.get_running_loop()
    serving = loop.create_task(_start_and_wait(server, recording))
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, serving.cancel)
    try:
        with suppress(asyncio.CancelledError):
            await serving
    finally:
        await server.close()


async def _start_and_wait(server: CassetteServer, recording: Recording) -> None:
    await server.start()
    for node, address in server.addresses.items():
        tell(f"broker {node} listens at {address}")
    tell(f"serving {len(recording):,} captured exchanges; press Ctrl-C to end")
    await asyncio.get_running_loop().create_future()


def _end(report: ServeReport, traffic: str | None, *, is_strict: bool) -> int:
    """Print the report and the verdict on the traffic; return the exit status."""
    for line in report.lines():
        print(escaped(mask_texts(line)))
    has_failed = is_strict and report.miss_count > 0
    if traffic is not None and report.connections:
        from conform import conform
        from conform.report.report_formats import text_lines

        verdict = conform(traffic, ignore=_NOT_JUDGED)
        for line in text_lines(verdict, "the traffic with clients"):
            print(line)
        has_failed = has_failed or not verdict.passed
    sys.stdout.flush()
    return EXIT_MISSED if has_failed else 0
