"""SASL tokens: shown parts and masked secrets."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.protocol.embedded.sasl_tokens import Token, decode_token

# RFC 7677, section 3.
FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
SERVER = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SIGNATURE = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
NONCE = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"


WEB_SIGNATURE = "c2ln" * 11


def jwt(claims: object, signature: str = WEB_SIGNATURE, algorithm: str = "HS256") -> str:
    parts = (json.dumps(part).encode() for part in ({"alg": algorithm}, claims))
    return ".".join([*(base64.urlsafe_b64encode(p).decode().rstrip("=") for p in parts), signature])


def bearer(token: str, authzid: str = "") -> bytes:
    return f"n,{authzid},\1auth=Bearer {token}\1\1".encode()


# (token, mechanism of the handshake, from the client?, its decoded parts)
TOKENS = [
    (
        b"\0alice\0sesame",
        "PLAIN",
        True,
        Token("PLAIN", "alice", "client-first", 'PLAIN user "alice" password ***'),
    ),
    (
        b"bob\0alice\0sesame",
        None,
        True,
        Token("PLAIN", "alice", "client-first", 'PLAIN user "alice" acts for "bob" password ***'),
    ),
    (b"", "PLAIN", False, Token("PLAIN", None, "accepted", "PLAIN accepted")),
    (b"\0alice\0a\0b", "PLAIN", True, Token("PLAIN", None, "", "PLAIN token of 10 bytes")),
    (b"\0\xff\0sesame", "PLAIN", True, Token("PLAIN", None, "", "PLAIN token of 9 bytes")),
    (
        FIRST,
        "SCRAM-SHA-256",
        True,
        Token(
            "SCRAM-SHA-256",
            "user",
            "client-first",
            'SCRAM-SHA-256 user "user" nonce "rOprNGfwEbeRWgbNEkqO"',
        ),
    ),
    (
        b"n,a=a=3Db,n=x=2Cy,r=N,tokenauth=true",
        None,
        True,
        Token("SCRAM", "x,y", "client-first", 'SCRAM user "x,y" acts for "a=b" nonce "N"'),
    ),
    (
        SERVER,
        None,
        False,
        Token("SCRAM", None, "server-first", f'SCRAM nonce "{NONCE}" salt *** iterations 4096'),
    ),
    (
        FINAL,
        None,
        True,
        Token("SCRAM-SHA-256", None, "client-final", f'SCRAM-SHA-256 nonce "{NONCE}" proof ***'),
    ),
    (
        SIGNATURE,
        None,
        False,
        Token("SCRAM-SHA-256", None, "server-final", "SCRAM-SHA-256 signature ***"),
    ),
    (
        b"v=" + base64.b64encode(bytes(64)),
        None,
        False,
        Token("SCRAM-SHA-512", None, "server-final", "SCRAM-SHA-512 signature ***"),
    ),
    (
        b"e=invalid-proof",
        "SCRAM-SHA-512",
        False,
        Token("SCRAM-SHA-512", None, "server-final", "SCRAM-SHA-512 error invalid-proof"),
    ),
    (
        b"e=swordfish",
        "SCRAM-SHA-512",
        False,
        Token("SCRAM-SHA-512", None, "server-final", "SCRAM-SHA-512 error without a known name"),
    ),
    (
        bearer(jwt({"sub": "carol"})),
        None,
        True,
        Token("OAUTHBEARER", None, "client-first", "OAUTHBEARER token ***"),
    ),
    (
        bearer("opaque", "a=dave"),
        "OAUTHBEARER",
        True,
        Token("OAUTHBEARER", "dave", "client-first", 'OAUTHBEARER user "dave" token ***'),
    ),
    (
        bearer("opaque"),
        None,
        True,
        Token("OAUTHBEARER", None, "client-first", "OAUTHBEARER token ***"),
    ),
    (
        b"\1",
        "OAUTHBEARER",
        True,
        Token("OAUTHBEARER", None, "client-final", "OAUTHBEARER acknowledges the error"),
    ),
    (
        b'{"status":"invalid_token","scope":"x"}',
        None,
        False,
        Token("OAUTHBEARER", None, "server-error", "OAUTHBEARER error invalid_token"),
    ),
    (b"", "OAUTHBEARER", False, Token("OAUTHBEARER", None, "accepted", "OAUTHBEARER accepted")),
    (
        bytes.fromhex("602b06092a864886f712010202") + b"ticket",
        None,
        True,
        Token("GSSAPI", None, "client-first", "GSSAPI token of 19 bytes"),
    ),
    (b"\5\4\0ticket", "GSSAPI", True, Token("GSSAPI", None, "", "GSSAPI token of 9 bytes")),
    (b"{}", "AWS_MSK_IAM", True, Token("AWS_MSK_IAM", None, "", "AWS_MSK_IAM token of 2 bytes")),
    (b"what", None, True, Token(None, None, "", "SASL token of 4 bytes")),
    (b"what", "a b\n", True, Token("a b\n", None, "", "SASL token of 4 bytes")),
]


@pytest.mark.parametrize(("data", "mechanism", "from_client", "token"), TOKENS)
def test_tokens(data: bytes, mechanism: str | None, from_client: bool, token: Token) -> None:
    assert decode_token(data, mechanism, from_client) == token


@pytest.mark.parametrize("claims", [{"sub": 5}, {"sub": ""}, {}, [], {"sub": "x"}, "sub", None])
def test_no_claim_of_a_web_token_is_shown(claims: object) -> None:
    token = decode_token(bearer(jwt(claims)))
    assert token == Token("OAUTHBEARER", None, "client-first", "OAUTHBEARER token ***")


def test_user_names_are_escaped() -> None:
    token = decode_token(b"\0al\nice\0sesame", "PLAIN")
    assert token.text == 'PLAIN user "al\\nice" password ***'


MECHANISMS = st.sampled_from(
    [None, "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI", "OTHER"]
)
SECRETS = st.text(st.characters(codec="utf-8", exclude_characters="\0\1"), min_size=10, max_size=30)


@given(secret=SECRETS, user=st.text(max_size=8), mechanism=MECHANISMS, from_client=st.booleans())
def test_text_of_a_token_masks_its_secret(
    secret: str, user: str, mechanism: str | None, from_client: bool
) -> None:
    user = user.encode("utf-8", "replace").decode()
    encoded = base64.b64encode(secret.encode()).decode()
    web_token = jwt({"sub": "x", "pin": secret})
    for text, hidden in [
        (f"{user}\0{user}\0{secret}", secret),
        (f"\0{user}\0{secret}\0x", secret),
        (f"\0{secret}", secret),
        (f"r=nonce,s={encoded},i=4096", encoded),
        (f"c=biws,r=nonce,p={encoded}", encoded),
        (f"v={encoded}", encoded),
        (f"e={encoded}", encoded),
        (f"n,a={user},\1auth=Bearer {secret}\1ext={secret}\1\1", secret),
        (f"n,,\1auth=Bearer {web_token}\1\1", web_token.split(".")[1]),
        (f'{{"status": "{secret}"}}', secret),
        (f"n,,n=x,r=nonce,pin={encoded}", encoded),
    ]:
        token = decode_token(text.encode(), mechanism, from_client)
        shown = str(token) + repr(token) + repr(list(_parts(token)))
        assert hidden not in shown
        assert ascii(hidden)[1:-1] not in shown


@given(data=st.binary(max_size=60), mechanism=MECHANISMS, from_client=st.booleans())
def test_any_bytes_are_decoded_as_a_token(
    data: bytes, mechanism: str | None, from_client: bool
) -> None:
    token = decode_token(data, mechanism, from_client)
    assert token.text.isprintable()
    if token.user is not None:
        assert token.user in data.decode().replace("=2C", ",").replace("=3D", "=")


def _parts(token: Token) -> tuple[str | None, ...]:
    return token.mechanism, token.user, token.step, token.text


@pytest.mark.parametrize(
    "token",
    [
        jwt({"sub": "sesame"}),
        jwt({"sub": "sesame"}, ""),
        jwt({"sub": "sesame"}, algorithm="none"),
        "sesame",
    ],
)
def test_a_bearer_token_is_masked_completely(token: str) -> None:
    assert "sesame" not in decode_token(bearer(token, "sesame" * (token == "sesame"))).text


@pytest.mark.parametrize("name", [jwt({"sub": "carol"}), "http://carol:sesame@host"])
def test_a_credential_as_user_name_is_masked(name: str) -> None:
    token = decode_token(b"\0" + name.encode() + b"\0sesame", "PLAIN")
    assert token.user is None
    assert token.text == f"PLAIN token of {len(name) + 8} bytes"
