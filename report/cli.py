"""The command `kafkashark report`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from dissector.cli import options
from dissector.cli.output import is_terminal, open_atomic
from dissector.errors import UsageError
from dissector.protocol.releases.removals import check_release

ALL = "all"


def report(
    captures: options.Captures,
    filter_text: options.FilterText = None,
    output: options.Output = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="RELEASE",
            help="Kafka release for the upgrade check; default: the newest.",
            show_default=False,
        ),
    ] = None,
    events: Annotated[
        str | None,
        typer.Option(
            "--events",
            metavar="N|all",
            help="Number of exchanges, from the first, processed for events; default: 20,000. "
            "0 omits events.",
            show_default=False,
        ),
    ] = None,
    conform: Annotated[
        str | None,
        typer.Option(
            "--conform",
            metavar="N|all",
            help="Number of exchanges, from the first, checked for conformance; default: 1,000. "
            "0 omits the check.",
            show_default=False,
        ),
    ] = None,
    ports: options.Ports = None,
    max_frame_bytes: options.MaxFrame = options.MAX_FRAME,
    keylogs: options.KeyLogs = None,
    decode_as: options.DecodeAs = None,
    keep_copies: options.KeepCopies = False,
    schemas: options.Schemas = None,
    jobs: options.Jobs = None,
    show_secrets: options.ShowSecrets = False,
) -> None:
    """Write a report on a capture: one self-contained HTML page.

    Contents: gaps of the capture; throughput, latencies and errors over time by API, client, topic
        and broker; the slowest and largest exchanges; events of groups, transactions and producers;
        topics and their clients; conformance; incompatibilities with a Kafka release. Events and
        conformance cover the first exchanges only, see --events and --conform; everything else
        covers all exchanges.
    """
    from dissector.view.document.html_form import html_lines
    from report.gather.figures import EVENT_EXCHANGES, JUDGED_EXCHANGES, Figures, Wishes
    from report.page.capture_document import capture_document

    if is_terminal(output):
        raise UsageError("report requires an output file: -o report.html")
    wishes = Wishes(
        event_exchanges=_limit("--events", events, EVENT_EXCHANGES),
        judged_exchanges=_limit("--conform", conform, JUDGED_EXCHANGES),
        show_secrets=show_secrets,
        **({} if to is None else {"release": _release(to)}),
    )
    source = options.source(captures, filter_text, ports, max_frame_bytes, jobs, keylogs, decode_as)
    figures = Figures(source, wishes)
    figures.gather()
    page = capture_document(figures)
    with open_atomic(output) as file:
        file.writelines(f"{line}\n".encode() for line in html_lines(page))
    for section, bug in figures.sections.bugs.items():
        line = f"kafkashark: a bug in kafkashark: report: section {section}: {bug}"
        print(f"{line}; the other sections are complete", file=sys.stderr)


def _limit(option: str, text: str | None, default: int) -> int | None:
    """
    Parse a number of exchanges; None for all.

    Raises:
        UsageError: The text is not a number.
    """
    if text is None:
        return default
    if text == ALL:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise UsageError(f"{option} takes a number or {ALL}, not {text!r}")
    return int(text)


def _release(text: str) -> str:
    """
    Parse the name of a release.

    Raises:
        UsageError: The release is unknown.
    """
    from dissector.summary.upgrade_check import NEWEST, OLDEST

    release = check_release(text)
    if release is None:
        raise UsageError(f"--to takes a release of Kafka, {OLDEST} to {NEWEST}, not {text!r}")
    return release
