"""Words of a report: its verdict as a line, headings of differences, names and counts."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dissector.view.text.escape import escaped
from dissector.view.text.value_text import json_text
from replay.model.row import Row
from replay.report.results import Results

_MAX_REASONS = 2
"""Number of reasons in the headline; the report has all of them."""

_MAX_CLIENTS = 4


def verdict_line(report: Results) -> str:
    """Return the verdict as one line: the number of differing responses and of unsent requests."""
    return "; ".join(verdict_parts(report))


def verdict_parts(report: Results) -> list[str]:
    """Return the parts of that line; the first one alone is a headline."""
    first, *others = (*_speed(report), *_verdict(report), *_unsent(report))
    return [escaped(each) for each in (f"{report.target}: {first}", *others)]


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


def _verdict(report: Results) -> Iterator[str]:
    if report.ended:
        yield f"ended early: {report.ended}"
        return
    if report.missing_parts:
        yield f"no report of part {', '.join(report.missing_parts)}"
        return
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
    yield found
    if summary_row["incomplete"]:
        has_parts = report.about.row()["parts"]
        why = "depend on other parts" if has_parts else "as the capture lacks packets"
        yield f"{summary_row['incomplete']:,} more {why}"
    if summary_row["unsupported"]:
        apis = ", ".join(report.unsupported.failing_apis)
        yield f"the target cannot do {summary_row['unsupported']:,} requests ({apis})"
    if summary_row["not_balanced"]:
        logs = f"{summary_row['not_balanced']:,} log{'s' * (summary_row['not_balanced'] != 1)}"
        yield f"{logs} could not be balanced"
    exceeded = summary_row["limits_exceeded"]
    if exceeded:
        yield f"{exceeded:,} latenc{'y is' if exceeded == 1 else 'ies are'} above the limit"


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


_MAX_TEXT = 120
_MAX_NAMES = 4
_MAX_APIS = 2


def difference_heading(row: Row) -> str:
    """Return a heading that identifies the request of a difference."""
    if row["client"] is None:
        return f"step {row['step']}: {row['api']}, pass {row['pass']}, beside another part"
    sent = row["version_sent"]
    version = f"v{row['api_version']}" + (f" sent as v{sent}" if sent != row["api_version"] else "")
    who = escaped(row["client_id"] or row["client"])
    in_pass = f", pass {row['pass']}" if row["pass"] else ""
    missing = row["missing_prerequisites"]
    cause = f"; may follow from {first_names(missing)}, left out" if missing else ""
    packet = "" if row["request_packet"] is None else f", packet {row['request_packet']}"
    # A report of an older release, which `--merge` reads, has no files.
    packet += f" ({escaped(file)})" if (file := row.get("request_place")) else ""
    return (
        f"step {row['step']}: {row['api']} {version} of {who}, connection {row['connection']}, "
        f"id {row['correlation_id']}{packet}{in_pass}{cause}"
    )


def value_text(value: Any, max_length: int = _MAX_TEXT) -> str:
    """Return one side of a difference as text; null if absent."""
    text = escaped(value) if isinstance(value, str) else json_text(value)
    return text if len(text) <= max_length else f"{text[: max_length - 1]}…"


def apis_text(counts: Mapping[str, int]) -> str:
    """Return the first APIs with their counts, and the number of further ones."""
    named = [f"{api} {count:,}" for api, count in list(counts.items())[:_MAX_APIS]]
    more = len(counts) - _MAX_APIS
    return ", ".join(named) + (f" and {more:,} more" if more > 0 else "")


def first_names(names: Sequence[str]) -> str:
    """Return the first names, and the number of further ones."""
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return escaped(", ".join(names[:_MAX_NAMES])) + more


def unbalanced_rows(rows: Sequence[Row]) -> list[Row]:
    """Return reasons why logs could not be balanced, each with the first such logs."""
    return [{**row, "logs": first_names(row["logs"])} for row in rows]
