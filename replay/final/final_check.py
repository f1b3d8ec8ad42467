"""
The end check of a pass: what nobody fetched in the capture is asked for.

A target that acknowledges a commit and drops it, or reports a log longer than it is, answers each
captured request rightly if none of them looks at it later. So the end of a pass asks for the state
of what the pass wrote, and compares the bounds that responses reported with that state.
"""

from __future__ import annotations

import asyncio

from cluster.client.cluster import Cluster
from cluster.client.topic_admin import end_offsets
from dissector.errors import ReplayError
from replay.compare.log_balance import UnbalancedLog
from replay.compare.other_parts import is_deleted_elsewhere, is_shared_log
from replay.final.commit_check import CommitCheck
from replay.final.findings import Findings
from replay.final.log_check import LogCheck
from replay.final.removal_check import check_removals
from replay.final.setting_check import check_settings
from replay.final.share_check import check_shares
from replay.final.topic_check import check_topics
from replay.final.transaction_check import TransactionCheck
from replay.final.written import Written
from replay.mapping.id_map import IdMap


async def check_end(written: Written, ids: IdMap, cluster: Cluster) -> Findings:
    """
    Compare the state of the target with what a pass wrote, within two timeouts of the target.

    Args:
        written: What the pass wrote and was shown.
        ids: The id mapping of the pass.
        cluster: The target.
    """
    findings, patience_s = Findings(), 2 * cluster.timeout_s  # one is for transactions that end
    try:
        async with asyncio.timeout(patience_s):
            await _check(written, ids, cluster, findings)
    except TimeoutError:
        _leave_open(written, ids, findings, f"not checked in {patience_s:g} s")
    except ReplayError as error:
        _leave_open(written, ids, findings, str(error))
    return findings


async def _check(written: Written, ids: IdMap, cluster: Cluster, findings: Findings) -> None:
    commits = dict(written.commits.certain())
    logs = {
        place: log
        for place, log in written.bounds.logs.items()
        if not is_deleted_elsewhere(ids.names.captured_topic(place[0]), ids)
    }
    await check_topics(written.topics.counts, ids, cluster, findings)
    await check_settings(written.created.topics, ids, cluster, findings)
    await check_removals(written.removals, ids, cluster, findings)
    await check_shares(written.shares, ids, cluster, findings)
    topics = {place.topic for place in commits} | {topic for topic, _ in logs}
    if not topics:
        return
    await cluster.refresh(topics)
    await CommitCheck(ids, cluster, findings).run(commits)
    await LogCheck(ids, cluster, findings).run(logs)
    if not ids.is_partial:  # else it lacks ends of transactions
        ends = await _written_ends(written, ids, cluster)
        await TransactionCheck(ids, cluster, findings).run(written.endings, ends)


async def _written_ends(
    written: Written, ids: IdMap, cluster: Cluster
) -> dict[tuple[str, int], int]:
    """Return the ends of the logs that producers with an id wrote to, by captured topic."""
    live = {
        (ids.names.topic(topic), partition): (topic, partition)
        for topic, partition in sorted(ids.producers.logs())
        if ids.offsets.log(topic, partition).appended
        and not is_shared_log(topic, partition, ids)
        and ids.names.topic(topic) not in written.topics.deleted
    }
    ends = await end_offsets(cluster, live)
    return {live[each]: end for each, end in ends.items() if isinstance(end, int)}


def _leave_open(written: Written, ids: IdMap, findings: Findings, why: str) -> None:
    for place, _ in written.commits.certain():
        topic = ids.names.captured_topic(place.topic)
        findings.unchecked.append(UnbalancedLog(topic, place.partition, why))
