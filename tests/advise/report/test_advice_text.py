"""Words of findings."""

from __future__ import annotations

import pytest

from advise.catalogue import ADVICES
from advise.registry.advice_report import AdviceFinding, Subject
from advise.report.advice_text import setting_text


@pytest.mark.parametrize(
    ("software", "setting"),
    [
        ("apache-kafka-java 3.9.0", "Java: acks=all"),
        ("confluent-kafka-python 2.16.1-rdkafka-2.16.0", "librdkafka: request.required.acks=-1"),
        ("aiokafka 0.14.0 (guess)", "kafka-python: acks='all'"),
        ("", "by library: kafkashark advise --explain acks-0"),
    ],
)
def test_the_setting_is_that_of_the_client_s_library(software: str, setting: str) -> None:
    subject = Subject("shop", "10.0.0.1", software)
    numbers = (1.0, "requests", 1.0, 1, 0, 0, (1,), "")
    finding = AdviceFinding(ADVICES["acks-0"], subject, "found", "cost", *numbers)
    assert setting_text(finding).startswith(setting)
