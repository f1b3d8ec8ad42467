"""What an answer of a broker means to a login."""

from __future__ import annotations

import pytest

from timeline.connections.login_rounds import Result, refusal_of, round_result


@pytest.mark.parametrize(
    ("mechanism", "answer", "result"),
    [
        ("PLAIN", b"", Result.DONE),
        ("SCRAM-SHA-256", b"r=nonce,s=c2FsdA==,i=4096", Result.MORE),
        ("SCRAM-SHA-256", b"v=c2lnbmF0dXJl", Result.DONE),
        ("SCRAM-SHA-512", b"e=invalid-proof", Result.REFUSED),
        ("OAUTHBEARER", b"", Result.DONE),
        ("OAUTHBEARER", b'{"status":"invalid_token"}', Result.REFUSED),
        ("GSSAPI", b"\x60\x81", Result.MORE),
        ("GSSAPI", b"", Result.DONE),
        ("AWS_MSK_IAM", b'{"version":"2020_10_22"}', Result.UNKNOWN),
        ("", b"anything", Result.UNKNOWN),
    ],
)
def test_the_result_of_a_round(mechanism: str, answer: bytes, result: Result) -> None:
    assert round_result(mechanism, answer) is result


def test_a_lifetime_ends_the_login() -> None:
    assert round_result("AWS_MSK_IAM", b"{}", 900_000) is Result.DONE


def test_the_refusal_has_the_known_error_only() -> None:
    assert refusal_of("OAUTHBEARER", b'{"status":"invalid_token"}') == "invalid_token"
    assert refusal_of("OAUTHBEARER", b'{"status":"no such word"}') == "refused"
    assert refusal_of("SCRAM-SHA-256", b"e=invalid-proof") == "invalid-proof"
