"""The exchanges that name the topic ids of a capture: without them an export has only ids."""

from __future__ import annotations

from uuid import UUID

import numpy as np

from dissector.engine.exchanges.exchange_facts import summarise_facts, topic_definitions
from dissector.engine.facts.fact_tables import extract_facts
from dissector.engine.tables.exchange_table import Exchanges
from dissector.protocol.facts import CLUSTER_METADATA_ID


class NameDefinitions:
    """Finds the first exchange that defines each name."""

    def __init__(self) -> None:
        self._named: set[UUID] = set()
        self._used: set[UUID] = set()
        self._named_by_chosen = {CLUSTER_METADATA_ID}

    @property
    def are_needed(self) -> bool:
        """Whether chosen exchanges have ids that none of them names."""
        return not self._used <= self._named_by_chosen

    def look_up(self, chosen: Exchanges) -> None:
        """Look for topic ids in the next chosen exchanges."""
        if len(chosen):
            facts = extract_facts(chosen, records=False)
            summaries, definitions = summarise_facts(chosen, facts)
            lists = summaries.topic_lists
            self._used.update(each for topics in lists for each in topics if isinstance(each, UUID))
            self._named_by_chosen.update(each.topic_id for each in definitions)

    def find(self, table: Exchanges) -> Exchanges:
        """Return the exchanges of a window that define a name first."""
        found = set()
        for each in topic_definitions(table):
            if each.topic_id not in self._named:
                self._named.add(each.topic_id)
                found.add(each.row)
        return table.rows(np.array(sorted(found), np.int64))
