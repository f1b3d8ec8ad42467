"""
A guess at a client's software by its client id, for clients that do not send their software.

Source: the default client ids of the clients: `client.id` of librdkafka, `CLIENT_ID_CONFIG` of
the Java clients, `ClientID` of sarama and franz-go, `client_id` of kafka-python and aiokafka,
`clientId` of kafkajs, and the transport of kafka-go.
"""

from __future__ import annotations

import re

_DEFAULTS = (
    (r"rdkafka", "librdkafka"),
    (r"sarama", "sarama"),
    (r"kgo", "franz-go"),
    (r"kafkajs", "kafkajs"),
    (r".*\(github\.com/segmentio/kafka-go\)", "kafka-go"),
    (r"kafka-python(?:-producer-\d+)?(?:-([\d.]+\w*))?", "kafka-python"),
    (r"aiokafka(?:-([\d.]+\w*))?", "aiokafka"),
    (r"(?:producer|adminclient)-\d+|consumer-.*-\d+", "Java client"),
)
"""Pattern of a default client id, with the version if any, and the software."""


def guess_software(client_id: str | None) -> str | None:
    """Return the software that has such a client id by default, marked as a guess."""
    for pattern, name in _DEFAULTS:
        found = re.fullmatch(pattern, client_id or "")
        if found:
            version = found[1] if found.re.groups else None
            return f"{name}{f' {version}' if version else ''} (guess)"
    return None
