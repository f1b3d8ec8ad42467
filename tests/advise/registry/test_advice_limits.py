"""Thresholds: defaults, those of settings, those of options."""

from __future__ import annotations

import advise.catalogue  # noqa: F401  (fills the registry)
from advise.registry.advice_limits import default_limits, limits_of


def test_options_count_before_settings() -> None:
    settings = {"acks-0": {"count": 6.0}}
    assert limits_of()["acks-0"]["count"] == 20
    assert limits_of((), settings)["acks-0"]["count"] == 6
    assert limits_of(["acks-0.count=7"], settings)["acks-0"]["count"] == 7
    assert limits_of() == default_limits(), "no run changes the defaults"
