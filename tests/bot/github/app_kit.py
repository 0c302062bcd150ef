"""An App to sign in as: one key for all tests, since making one takes a tenth of a second."""

from __future__ import annotations

from functools import cache

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from bot.github.identity import Credentials

APP_ID = "99"


@cache
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


@cache
def pem() -> str:
    return (
        key()
        .private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
        .decode()
    )


def credentials() -> Credentials:
    return Credentials(app_id=APP_ID, private_key=pem())
