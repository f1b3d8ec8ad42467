"""Ends of topics: a topic that a step deletes is balanced before, and then forgotten."""

from __future__ import annotations

from replay.compare.log_balance import Balance, balance
from replay.run.pass_context import PassContext


def record_balance(context: PassContext, balanced: Balance) -> None:
    """Record the logs that could not be balanced, and what was found in the others."""
    outcomes, number = context.outcomes, context.pass_number
    outcomes.record_logs(number, balanced.unbalanced, balanced.shared)
    for found in balanced.findings:
        outcomes.record_late_difference(found.step, number, found.difference)


async def end_topics(context: PassContext, number: int) -> None:
    """
    End the lives of the topics that a step deletes; it is sent afterwards.

    What was learned of a topic belongs to its id: another topic of that name has other logs.
    """
    for topic, ids, next_ids in context.plan.ended_lives.get(number, ()):
        context.batched_reporter.flush()
        record_balance(context, await balance(context.ids, context.cluster, topic))
        context.ids.end_topic(topic, ids, next_ids)
