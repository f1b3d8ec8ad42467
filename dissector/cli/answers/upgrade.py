"""The command `kafkashark upgrade`."""

from __future__ import annotations

import sys
from typing import Annotated

from dissector.cli import options
from dissector.cli.output import write_rows
from dissector.cli.parsing.parameters import Option
from dissector.cli.presentation import table_options
from dissector.cli.presentation.completion import complete_words
from dissector.cli.presentation.section_view import SectionOptions, SectionView
from dissector.errors import UsageError
from dissector.protocol.releases.kafka_release_table import RELEASES
from dissector.protocol.releases.removals import check_release
from dissector.summary import upgrade_check
from dissector.summary.statistics import Statistics
from dissector.summary.version_offers import VersionOffers

FORMATS = ("table", "ndjson", "csv")

PRIORITY = (
    *("client_id", "client", "broker", "api", "verdict", "api_version", "spoken"),
    *("offered", "needed", "kips", "removed_in", "software"),
)
"""The columns that a narrow terminal shows first."""


def upgrade(
    captures: options.Captures,
    to: Annotated[
        str,
        Option(
            "--to",
            metavar="RELEASE",
            autocompletion=complete_words(lambda: RELEASES),
            help="The release of Kafka, as 4.4.",
        ),
    ],
    clients: Annotated[
        bool,
        Option(
            "--clients",
            help="Check an upgrade of the clients instead: report brokers that are too old.",
        ),
    ] = False,
    filter_text: options.FilterText = None,
    form: Annotated[str, options.format_option(FORMATS)] = "table",
    output: options.Output = None,
    columns: table_options.ColumnList = None,
    fields: table_options.ColumnNames = None,
    sort: options.Sort = None,
    limit: table_options.Limit = None,
    color: table_options.Color = "auto",
    list_columns: table_options.ListColumns = False,
    list_fields: table_options.ListFields = False,
    ports: options.Ports = None,
    max_frame_bytes: options.MaxFrame = options.MAX_FRAME,
    keylogs: options.KeyLogs = None,
    decode_as: options.DecodeAs = None,
    keep_copies: options.KeepCopies = False,
    schemas: options.Schemas = None,
    jobs: options.Jobs = None,
) -> int:
    """
    Print the API versions in use that a release of Kafka removed or does not know.

    The verdict on each is `breaks`, or `negotiates` if the client requests the broker's versions
    and may choose another one. With --clients it is `breaks`, `unused` where no client of the
    capture sends such requests, or `unknown` without the broker's versions.

    Exit status 1 if a client breaks, or with --clients a broker is too old. For example:
    kafkashark upgrade a.pcap --to 4.4
    """
    options.check_choice(form, FORMATS, "-T")
    release = check_release(to)
    if release is None:
        known = f"{upgrade_check.OLDEST} to {upgrade_check.NEWEST}"
        raise UsageError(f"--to takes a release of Kafka, {known}, not {to!r}")
    subject = "brokers" if clients else "clients"
    known_columns = upgrade_check.BROKER_COLUMNS if clients else upgrade_check.CLIENT_COLUMNS
    view = SectionView.of(
        {subject: (subject, known_columns)},
        SectionOptions(columns, fields, sort, limit, color),
        output=output,
        priority=PRIORITY,
    )
    source = options.source(captures, filter_text, ports, max_frame_bytes, jobs, keylogs, decode_as)
    source.explains_no_kafka = True
    offers = VersionOffers(source.capture)
    source.observers.append(offers.observe)
    report = Statistics({"uses": upgrade_check.USES}, offers.software_of)
    for part in source.without_secrets(source.parts(), show_secrets=False):
        report.add(part)
    uses = report.sections()["uses"]
    check = upgrade_check.check_brokers if clients else upgrade_check.check_clients
    found = check(uses, offers, release)
    if found.subjects or found.rows:
        rows = view.arranged({subject: found.rows}, source.capture.logins.all)[subject]
        shown = view.tables[subject][1]
        write_rows([view.selected(subject, rows)], form, output, shown, shown, layout=view.layout)
        view.report_left_out()
    if not found.subjects:
        missing = "ApiVersions responses" if clients else "requests"
        raise UsageError(f"none of the {subject} can be judged: the capture has no {missing}")
    what = "are too old for clients of" if clients else "break with"
    print(
        f"kafkashark: {found.broken} of {found.subjects} {subject} {what} Kafka {release}",
        file=sys.stderr,
    )
    return 1 if found.broken else 0
