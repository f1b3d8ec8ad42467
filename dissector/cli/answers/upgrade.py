"""The command `kafkashark upgrade`."""

from __future__ import annotations

import sys

from dissector.cli import capture_source
from dissector.cli.declared.answer_options import UpgradeOptions
from dissector.cli.live_input import accepts_live
from dissector.cli.output import check_parquet, write_rows
from dissector.cli.presentation.section_view import SectionView
from dissector.column_catalogue import UPGRADES
from dissector.engine.tables.columns_of import column_batches
from dissector.errors import UsageError
from dissector.protocol.releases.removals import check_release
from dissector.summary import upgrade_check
from dissector.summary.statistics import Statistics
from dissector.summary.version_offers import VersionOffers

PRIORITY = (
    *("client_id", "client", "broker", "api", "verdict", "api_version", "spoken"),
    *("offered", "needed", "kips", "removed_in", "software"),
)
"""The columns that a narrow terminal shows first."""


@accepts_live
def upgrade(given: UpgradeOptions) -> int:
    """Print the API versions in use that a release of Kafka removed or does not know."""
    check_parquet(given.form, given.output)
    clients = given.clients
    release = check_release(given.to)
    if release is None:
        known = f"{upgrade_check.OLDEST} to {upgrade_check.NEWEST}"
        raise UsageError(f"--to takes a release of Kafka, {known}, not {given.to!r}")
    subject = "brokers" if clients else "clients"
    known_columns = upgrade_check.BROKER_COLUMNS if clients else upgrade_check.CLIENT_COLUMNS
    view = SectionView.of({subject: (subject, known_columns)}, given, priority=PRIORITY)
    source = capture_source.source(given, given.selected)
    source.explains_no_kafka = True
    offers = VersionOffers(source.capture)
    source.observers.append(offers.observe)
    report = Statistics({"uses": upgrade_check.USES}, offers.software_of)
    for part in source.without_secrets(source.parts(), show_secrets=False):
        report.add(part)
    uses = report.sections()["uses"]
    if clients:
        found = upgrade_check.check_brokers(uses, offers, release)
    else:
        found = upgrade_check.check_clients(uses, offers, release, internal=given.internal)
    if found.subjects or found.rows:
        rows = view.arranged({subject: found.rows}, source.capture.logins.all)[subject]
        shown = view.tables[subject][1]
        if given.form in ("csv", "parquet"):
            view.write_rows({subject: rows}, given.form, given.output, UPGRADES)
        else:
            parts = column_batches(view.selected(subject, rows))
            write_rows(parts, given.form, given.output, shown, shown, layout=view.layout)
        view.report_left_out()
    if found.internal and not found.subjects:
        raise UsageError("all clients are brokers or controllers, which --internal judges")
    if found.internal:
        print(
            f"kafkashark: {found.internal} brokers or controllers are not judged as clients of "
            "others; --internal does",
            file=sys.stderr,
        )
    if not found.subjects:
        missing = "ApiVersions responses" if clients else "requests"
        raise UsageError(f"none of the {subject} can be judged: the capture has no {missing}")
    what = "are too old for clients of" if clients else "break with"
    print(
        f"kafkashark: {found.broken} of {found.subjects} {subject} {what} Kafka {release}",
        file=sys.stderr,
    )
    return 1 if found.broken else 0
