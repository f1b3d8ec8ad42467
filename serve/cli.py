"""The command `kafkashark serve`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from cluster.security_options import UpstreamOptions, tell
from dissector.cli.declared.reading_options import (
    CaptureOptions,
    CopyOptions,
    DecodingOptions,
    ReportFileOptions,
)
from dissector.cli.parsing.declarations import option
from dissector.file_roles import READS, WRITES
from serve.listener_options import FaultOptions, ListenerTlsOptions

if TYPE_CHECKING:
    from serve.report.serve_report import ServeReport
    from serve.server.serve_options import ServeOptions as ServerSettings

EXIT_MISSED = 1
_NOT_JUDGED = "L04"
"""Consumed records differ from produced ones by design."""
DEFAULT_ADDRESS = "127.0.0.1:9092"


class ServeOptions(
    FaultOptions,
    ListenerTlsOptions,
    UpstreamOptions,
    CaptureOptions,
    DecodingOptions,
    CopyOptions,
    ReportFileOptions,
):
    """The options of `serve`."""

    captures: Sequence[str] = option(
        default=(),
        metavar="CAPTURE...",
        help="pcap or pcapng files, or brokers' request logs, also compressed, in any order; - is "
        "standard input. Without any, --upstream answers all.",
        role=READS,
    )
    listen: str = option(
        "--listen",
        default=DEFAULT_ADDRESS,
        metavar="HOST:PORT",
        help="Address of the first broker; the others listen on the next ports. Port 0 selects "
        "free ports. Every client that can connect can read the records of the capture.",
    )
    advertise: str = option(
        "--advertise",
        default="",
        metavar="HOST",
        help="Host of the brokers in answers, where clients reach them by another name than they "
        "listen at, as from outside of a container.",
    )
    strict: bool = option(
        "--strict", default=False, help="Exit with status 1 if a request has no captured answer."
    )
    upstream: str | None = option(
        "--upstream",
        default=None,
        metavar="HOST:PORT[,...]",
        help="Cluster for requests without a captured answer; by default the embedded broker, "
        "with --strict an error.",
    )
    record: str | None = option(
        "--record",
        default=None,
        metavar="OUT.pcapng",
        help="Write exchanges answered by the fallback, to serve beside the capture.",
        role=WRITES,
    )
    judge: bool = option(
        "--conform",
        default=False,
        help="Check the traffic with clients against the rules of the protocol at exit; "
        "violations set exit status 1.",
    )
    latency: str = option(
        "--latency",
        default="none",
        metavar="recorded|FACTOR|none",
        help="Delay of answers: the captured latency, a multiple of it, or none.",
    )
    wait_for_producers: bool = option(
        "--wait-for-producers",
        default=False,
        help="Serve the records of live producers to consumers, instead of captured produced "
        "records, which are otherwise visible from the start.",
    )
    client_secret: Path | None = option(
        "--sasl-secret",
        default=None,
        metavar="FILE",
        help="File with the password of clients; default: $KAFKASHARK_PASSWORD. Required for "
        "SCRAM; without it PLAIN accepts any password.",
        role=READS,
    )


def serve(given: ServeOptions) -> int:
    """Answer clients as the captured brokers did, until Ctrl-C.

    Each captured broker gets a listener. A request gets the response to the equivalent captured
    request: versions, ids and times may differ.
    """
    from dissector.view.document.report_files import check_report_file
    from serve.fallback.chosen_fallback import chosen_fallback
    from serve.faults.fault import Fault
    from serve.recording.recording_reader import read_recording
    from serve.report.serve_report import ServeReport
    from serve.server.cassette_server import CassetteServer
    from serve.server.serving import serve_until_signal
    from serve.traffic.served_traffic import ServedTraffic

    for file in given.report:
        check_report_file(file)
    settings = _server_settings(given)
    fallback = chosen_fallback(given.upstream, given.security(), is_strict=given.strict)
    found = [Fault.of(*each) for each in given.faults]
    recording = read_recording(
        *given.captures, ports=given.ports, keylogs=given.keylogs, decode_as=given.decode_as
    )
    for problem in recording.problems:
        tell(problem)
    report = ServeReport()
    with ServedTraffic(given.record, keeps_all=given.judge) as traffic, closing(recording):
        server = CassetteServer(
            recording, settings, report, faults=found, fallback=fallback, observe=traffic.observe
        )
        serve_until_signal(server, len(recording), tell)
        return _end(report, traffic.all_path, given.report, is_strict=given.strict)


def _server_settings(given: ServeOptions) -> ServerSettings:
    from cluster.client.endpoint import parse_address
    from serve.server.listener_security import login_password
    from serve.server.serve_options import ServeOptions as ServerSettings
    from serve.server.serve_options import parse_latency, parse_listener

    host, port = parse_listener(given.listen)
    return ServerSettings(
        host,
        port,
        given.advertise and parse_address(f"{given.advertise}:1")[0],
        latency=parse_latency(given.latency),
        is_strict=given.strict,
        follows_producers=given.wait_for_producers,
        tls=given.listener_tls(),
        password=login_password(given.client_secret),
        warn=tell,
    )


def _end(report: ServeReport, traffic: str | None, files: Sequence[str], *, is_strict: bool) -> int:
    """Print the report and the verdict on the traffic, write files; return the exit status."""
    from serve.report import serve_document

    for file in files:
        serve_document.write_report(report, file)
    for line in serve_document.text_lines(report):
        print(line)
    has_failed = is_strict and report.miss_count > 0
    if traffic is not None and report.connections:
        from conform import conform
        from conform.report.report_formats import verdict_check

        verdict = conform(traffic, ignore=_NOT_JUDGED)
        for line in verdict_check(verdict, "the traffic with clients").lines("text"):
            print(line)
        has_failed = has_failed or not verdict.passed
    sys.stdout.flush()
    return EXIT_MISSED if has_failed else 0
