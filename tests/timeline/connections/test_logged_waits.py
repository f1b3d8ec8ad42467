"""Waits in purgatory and for quotas, as request logs have them."""

from __future__ import annotations

from pathlib import Path

from tests.corpus import FOLDER
from tests.dissector.request_log.log_samples import exchange, line
from tests.timeline.events_of import only
from timeline.events.event import Event
from timeline.public import timeline

HOUR = "2026-11-26 17"


def logged(tmp_path: Path, *entries: tuple[str, dict[str, object]]) -> list[Event]:
    """Return the events of a log with the entries, at minutes and seconds."""
    path = tmp_path / "kafka-request.log"
    texts = [
        line(exchange(correlation_id=number, **more), f"{HOUR}:{at},000")  # type: ignore[arg-type]
        for number, (at, more) in enumerate(entries)
    ]
    path.write_text("".join(texts))
    return list(timeline(path, kinds=["connection"]))


def test_waits_are_runs(tmp_path: Path) -> None:
    held, throttled = {"remoteTimeMs": 250.5}, {"throttleTimeMs": 40}
    events = logged(
        tmp_path,
        *[("20:01", held), ("20:02", {"remoteTimeMs": 99.9}), ("20:03", held)],
        *[("20:30", held), ("20:31", throttled), ("20:32", throttled)],
    )
    assert [each.text.partition(", in ")[0] for each in only(events, "held")] == [
        "127.0.0.1:9092 held, for followers or the controller, 2 requests (Heartbeat) "
        "for 501 ms in all, 250 ms at most",
        "127.0.0.1:9092 held, for followers or the controller, 1 request (Heartbeat) "
        "for 250 ms in all, 250 ms at most",
    ]
    (run,) = only(events, "throttled")
    assert (run.cause, run.subject) == ("quota", "bill at 127.0.0.1 to 127.0.0.1:9092")
    assert "throttled 2 requests (Heartbeat) for 80 ms in all, 40 ms at most" in run.text
    assert len(run.evidence) == 2
    assert run.certain


def test_waits_for_records_are_none(tmp_path: Path) -> None:
    request = {"groupId": "g", "sessionTimeoutMs": 1, "memberId": "", "protocolType": "consumer"}
    body = {"key": 11, "name": "JOIN_GROUP", "version": 0, "remoteTimeMs": 3000}
    assert not only(
        logged(tmp_path, ("20:01", body | {"request": request | {"protocols": []}})), "held"
    )


def test_a_log_of_a_cluster() -> None:
    found = list(timeline(FOLDER / "kafka4-request-log.log.gz", kinds=["connection"]))
    assert {each.cause for each in only(found, "held")} <= {"purgatory"}
