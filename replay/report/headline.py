"""The verdict on a replay as one line, and a short description of the replay."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from dissector.view.text.escape import escaped
from replay.model.row import Row
from replay.report.results import Results

_MAX_REASONS = 2
"""Number of reasons in the headline; the report has all of them."""

_MAX_CLIENTS = 4


def verdict_line(report: Results) -> str:
    """Return the verdict as one line: the number of differing responses and of unsent requests."""
    parts = [*_speed(report), _verdict(report), *_unsent(report)]
    return escaped(f"{report.target}: {'; '.join(parts)}")


def _speed(report: Results) -> Iterator[str]:
    """Yield the speed that was found, if one was searched."""
    if not report.trials:
        return
    limits = ", ".join(report.about.row()["options"]["latency-limit"])
    speeds = [row["speed"] for row in report.trials if row["latency"]]
    if report.found_speed is not None:
        rate = f"{report.found_rate:,} requests/s"
        yield f"holds {limits} up to {report.found_speed:.3g} times the captured speed, {rate}"
        if report.trials[-1]["holds"] and report.trials[-1]["why"]:
            yield f"the limit is higher: {report.trials[-1]['why']}"
    elif report.ended:
        return
    elif speeds:
        yield f"does not hold {limits}, not even at {min(speeds):.3g} times the captured speed"
    else:
        yield f"{limits} was not measured: {report.trials[-1]['why']}"


def _verdict(report: Results) -> str:
    if report.ended:
        return f"ended early: {report.ended}"
    if report.missing_parts:
        return f"no report of part {', '.join(report.missing_parts)}"
    summary_row = report.summary()
    if report.failing:
        differ = f"differ{'s' * (report.failing == 1)} from the capture"
        found = f"{report.failing:,} of {report.replayed:,} responses {differ}"
        if report.passed:
            found += ", none in a way that --fail-on names"
    elif summary_row["accepted"]:
        count = f"{summary_row['accepted']:,} response{'s' * (summary_row['accepted'] != 1)}"
        found = f"answers as captured, but for accepted differences in {count}"
    else:
        found = "answers as captured"
    if summary_row["incomplete"]:
        has_parts = report.about.row()["parts"]
        why = "depend on other parts" if has_parts else "as the capture lacks packets"
        found += f"; {summary_row['incomplete']:,} more {why}"
    if summary_row["unsupported"]:
        apis = ", ".join(report.unsupported.failing_apis)
        found += f"; the target cannot do {summary_row['unsupported']:,} requests ({apis})"
    if summary_row["not_balanced"]:
        logs = f"{summary_row['not_balanced']:,} log{'s' * (summary_row['not_balanced'] != 1)}"
        found += f"; {logs} could not be balanced"
    exceeded = summary_row["limits_exceeded"]
    if exceeded:
        found += f"; {exceeded:,} latenc{'y is' if exceeded == 1 else 'ies are'} above the limit"
    return found


def _unsent(report: Results) -> Iterator[str]:
    """Yield the number of requests that were not sent, with the most frequent reasons."""
    rows = report.left_out_rows()
    count = report.captured - report.replayed
    if count <= 0:
        return
    reasons = [(row["count"], row["reason"]) for row in rows]
    if report.never_reached:
        reasons.append((report.never_reached, "never reached"))
    reasons.sort(key=lambda each: -each[0])
    named = [f"{reason} ({number:,})" for number, reason in reasons[:_MAX_REASONS]]
    more = sum(number for number, _ in reasons[_MAX_REASONS:])
    named += [f"other reasons ({more:,})"] if more else []
    yield f"{count:,} of {report.captured:,} requests were not sent: {'; '.join(named)}"


def about_rows(report: Results) -> list[Row]:
    """Return the capture, clients, target and options of the replay, one row for each fact."""
    about = report.about.row()
    rows = [("capture", text) for text in _captures(about)]
    if about["clients"]:
        rows.append(("clients", _clients(about["clients"])))
    rows.append(("target", _target(report, about["target"])))
    rows.append(("options", _options(about["options"])))
    if about["reports"]:
        rows.append(("reports", ", ".join(about["reports"])))
    rows.append(("by", f"kafkashark {about['kafkashark']}, {about['replayed_at'][:19]}Z"))
    return [{"what": what, "value": escaped(value)} for what, value in rows]


def _captures(about: Row) -> Iterator[str]:
    for each in about["captures"]:
        size = "" if each["bytes"] is None else f", {each['bytes']:,} bytes"
        yield f"{'standard input' if each['file'] == '-' else each['file']}{size}"
    if about["first_request"]:
        yield f"requests from {about['first_request']} to {about['last_request']}"


def _clients(clients: list[Row]) -> str:
    named = [f"{each['software']} ({each['connections']:,})" for each in clients[:_MAX_CLIENTS]]
    more = len(clients) - _MAX_CLIENTS
    return ", ".join(named + [f"{more:,} more"] * (more > 0)) + ", by connections"


def _target(report: Results, target: Row) -> str:
    if not target:
        return f"{report.target}, not reached"
    brokers = f"{target['brokers']:,} broker{'s' * (target['brokers'] != 1)}"
    version = target["version"] or "version not known"
    level = target["metadata_version"]
    finest = f" (metadata.version {level})" if level else ""
    return f"{report.target}: {version}{finest}, cluster {target['cluster_id'] or '?'}, {brokers}"


def _options(options: dict[str, object]) -> str:
    """Return the options as they would be typed in a shell."""
    words: list[str] = []
    for name, value in options.items():
        for each in value if isinstance(value, list) else [value]:
            words += (
                [f"--{name}"] if each is True else [f"--{name} {shlex.quote(_option_text(each))}"]
            )
    return " ".join(words)


def _option_text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
