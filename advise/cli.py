"""`kafkashark advise`: what is wrong with the use of Kafka in a capture."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping

from dissector.cli.declared.check_options import CheckOptions, about_items, looks_for
from dissector.cli.declared.reading_options import (
    CopyOptions,
    LiveOptions,
    PeriodOptions,
    ReadingOptions,
    SecretOptions,
)
from dissector.cli.parsing.declarations import option
from dissector.view.text.escape import escaped

FAIL_ON = ("costly", "risky", "informs", "nothing")

EXIT_FOUND = 1


def _advice_ids() -> Iterable[str]:
    from advise.catalogue import ADVICES

    return ADVICES


@looks_for("advice", "tiny-batches,acks-0", _advice_ids)
class AdviseOptions(
    PeriodOptions, CheckOptions, ReadingOptions, CopyOptions, SecretOptions, LiveOptions
):
    """The options of `advise`."""

    thresholds: tuple[str, ...] = option(
        "--set",
        default=(),
        metavar="ADVICE.NAME=N",
        help="Another threshold, as tiny-batches.records=5. Repeatable; by default that of "
        "the settings (kafkashark config).",
    )
    fail_on: str = option(
        "--fail-on",
        default="costly",
        metavar="RANK",
        choices=FAIL_ON,
        help=f"Mildest rank with exit status 1: {'|'.join(FAIL_ON)}.",
    )

    @classmethod
    def number_tables(cls) -> Mapping[str, Mapping[str, float]]:
        """Return the thresholds of all advices."""
        import advise.catalogue  # noqa: F401  (fills the registry)
        from advise.registry.advice_limits import default_limits

        return default_limits()


def advise(given: AdviseOptions) -> int:
    """Report how clients use Kafka badly: what, whom, what it costs, which setting to change.

    A finding names the client, topic or group, its number and threshold, packets and a display
    filter. Rates are judged over a minimum time and count only. Traffic between brokers is left
    out. All exchanges are evidence; -Y, --since and --until choose those of which a finding must
    name one. The exit status is 1 if something costly was found (--fail-on).

    Live, at the end: kafkashark advise -i eth0 -a duration:60
    """
    # All is loaded before a live capture begins: its first packets must not wait.
    from advise import public  # noqa: F401
    from dissector.cli import capture_source  # noqa: F401
    from dissector.cli.live_input import accepts_live

    return accepts_live(_advise)(given)


def _advise(given: AdviseOptions) -> int:
    from advise.adviser import advise_windows
    from advise.catalogue import ADVICES
    from advise.public import advice_by_id, select_advices
    from advise.registry.advice import Rank
    from advise.registry.advice_limits import limits_of
    from advise.report.advice_formats import advice_check
    from advise.report.advice_rows import advice_row
    from advise.report.advice_text import advice_lines
    from advise.script_advice import script_advices
    from dissector.cli.capture_source import source
    from dissector.cli.output import write_lines, write_text
    from dissector.cli.presentation.table_options import has_color
    from dissector.cli.settings.settings_file import settings_file
    from dissector.query.passing_packets import PassingPackets

    form = given.chosen_form
    write = write_text if form == "text" else write_lines
    notices: list[str] = []
    more = script_advices(given.scripts, notices.append)
    if given.explain is not None:
        explained = advice_by_id(given.explain, {**ADVICES, **{each.id: each for each in more}})
        write(about_items(form, advice_lines(explained), [advice_row(explained)]), given.output)
        return 0
    advices = select_advices(given.select, given.ignore, more)
    if given.list_items:
        lines = (f"{each.id:<22} {each.rank:<8} {each.title}" for each in advices)
        write_lines(about_items(form, lines, map(advice_row, advices)), given.output)
        return 0
    limits = limits_of(given.thresholds, settings_file().numbers_of("advise"))
    read = source(given, given.selected)
    read.explains_no_kafka = True
    read.capture.notices += notices
    passing = PassingPackets(read.selection)
    read.observers.append(passing.add)
    windows = read.each_window(gleaning=True, checking=False)
    report = advise_windows(advices, limits, read.capture, windows, show_secrets=given.show_secrets)
    report.findings = [each for each in report.findings if passing.any(each.packets)]
    report.fail_on = None if given.fail_on == "nothing" else Rank(given.fail_on)
    captures = given.captures
    subject = captures[0] if len(captures) == 1 else f"{len(captures)} captures"
    is_coloured = has_color(given, given.output)
    lines_of_report = advice_check(report, subject).lines(form, is_coloured=is_coloured)
    write(lines_of_report, given.output)
    if not report.exchanges:
        print("kafkashark:", escaped(f"{subject}: no requests of clients"), file=sys.stderr)
    return 0 if report.passed else EXIT_FOUND
