"""Keys and signed claims of a NATS operator, an account and a user, as its tools make them."""

import base64
import hashlib
import json
import os
import time

import nkeys


class Identity:
    """A key pair with a name; `kind` is a prefix of nkeys."""

    def __init__(self, kind, name):
        self.name, self.seed = name, nkeys.encode_seed(os.urandom(32), kind)
        self.public = self._pair().public_key.decode()

    def claims(self, issuer, **nats):
        """A signed JSON web token about this identity."""
        body = {"iat": int(time.time()), "iss": issuer.public, "name": self.name, "sub": self.public, "nats": nats}
        body["jti"] = base64.b32encode(hashlib.sha256(json.dumps(body).encode()).digest()).decode().rstrip("=")
        head = {"typ": "JWT", "alg": "ed25519-nkey"}
        signed = b".".join(_encoded(json.dumps(part).encode()) for part in (head, body))
        return (signed + b"." + _encoded(issuer._pair().sign(signed))).decode()

    def _pair(self):
        return nkeys.from_seed(bytearray(self.seed))


def _encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def an_operator():
    """Settings of a server that trusts an operator, and the credentials file of a user of its account."""
    operator = Identity(nkeys.PREFIX_BYTE_OPERATOR, "operator")
    system, account = (Identity(nkeys.PREFIX_BYTE_ACCOUNT, name) for name in ("system", "city"))
    user = Identity(nkeys.PREFIX_BYTE_USER, "eventide")
    all_of_it = dict.fromkeys(("subs", "data", "payload", "imports", "exports", "conn", "leaf"), -1)
    durable = all_of_it | dict.fromkeys(("mem_storage", "disk_storage", "streams", "consumer"), -1)
    preloaded = {
        system.public: system.claims(operator, type="account", version=2, limits=all_of_it),
        account.public: account.claims(operator, type="account", version=2, limits=durable),
    }
    lines = "\n".join(f"{public}: {claims}" for public, claims in preloaded.items())
    trusted = operator.claims(operator, type="operator", version=2)
    settings = f"operator: {trusted}\nsystem_account: {system.public}\nresolver: MEMORY\n"
    settings += f"resolver_preload: {{\n{lines}\n}}"
    limits = dict.fromkeys(("subs", "data", "payload"), -1)
    token = user.claims(account, type="user", version=2, **limits)
    credentials = (
        f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{user.seed.decode()}\n------END USER NKEY SEED------\n"
    )
    return settings, credentials
