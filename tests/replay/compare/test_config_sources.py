"""Sources of settings: defaults, or set by somebody."""

from __future__ import annotations

import pytest

from replay.compare.config_sources import is_default_setting


@pytest.mark.parametrize(
    ("one", "other", "is_default"),
    [
        ({"config_source": 5, "value": "1"}, {"config_source": 5, "value": "2"}, True),
        ({"source": 5}, {"source": 5}, True),
        ({"is_default": True}, {"is_default": True}, True),
        ({"is_default": True}, {"is_default": False}, False),
        ({"config_source": 5, "value": "1"}, {"config_source": 3, "value": "1"}, True),
        ({"config_source": 5, "value": "1"}, {"config_source": 3, "value": "2"}, False),
        ({"config_source": 3, "value": "1"}, {"config_source": 3, "value": "1"}, False),
        ({"config_source": 5, "value": "1"}, {"config_source": 1, "value": "1"}, False),
        ({"name": "t"}, {"name": "t"}, False),
    ],
)
def test_defaults(one: dict[str, object], other: dict[str, object], is_default: bool) -> None:
    assert is_default_setting(one, other) is is_default
    assert is_default_setting(other, one) is is_default
