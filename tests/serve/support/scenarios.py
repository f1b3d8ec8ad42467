"""Scenarios of the corpus played again, at their own captures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from serve.public import Cassette
from tests.broker.kafka_cluster import Cluster
from tests.replay.support.replay_captures import SHIPPED
from tools.record.scenario import Mock, Scenario, Stage, all_scenarios

FILES = {each["name"]: each["file"] for each in json.loads((SHIPPED / "manifest.json").read_text())}


class ServedCluster:
    """What a play asks of a cluster, for one that is served."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def bootstrap(self, *_: Any) -> str:
        return self._bootstrap


def scenario(name: str) -> Scenario:
    return next(each for each in all_scenarios() if each.name == name)


def cassette(name: str, **settings: Any) -> Cassette:
    """Return the cassette of a scenario, whose clients see what they have produced."""
    keylog = SHIPPED / f"{name}.keylog"
    return Cassette(
        SHIPPED / FILES[name],
        keylogs=[keylog] if keylog.exists() else [],
        follows_producers=True,
        **settings,
    )


def play(name: str, bootstrap: str, folder: Path) -> None:
    """Play a scenario."""
    played = scenario(name)
    cluster = cast("Cluster", ServedCluster(bootstrap))
    kafka = None if isinstance(played.cluster, Mock) else cluster
    played.play(Stage(name, bootstrap, (), folder, kafka))
