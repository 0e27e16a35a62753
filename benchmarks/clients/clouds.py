"""This library at clouds, without their keys, and at the makers with a signature that nothing needs."""

from __future__ import annotations

import os
from typing import Any

from . import Offer, Target
from .ours import OURS, Ours

_KEYS = ("AZURE_OPENAI_API_KEY", "AWS_BEARER_TOKEN_BEDROCK")
_ACCESS_KEY, _SECRET_KEY = "AKIASIMULATOR", "simulator"


class OursAtCloud(Ours):
    """Tokens of a function for Azure and Vertex AI, and a signature (SigV4) for AWS."""

    def __init__(self, target: Target) -> None:
        for variable in _KEYS:
            os.environ.pop(variable, None)
        os.environ |= {"AWS_ACCESS_KEY_ID": _ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": _SECRET_KEY}
        super().__init__(target, keys={"azure": lambda: "token-1", "vertex_ai": lambda: "token-1"})


class OursAndSignature(Ours):
    """botocore signs a request of the same length before each call."""

    def __init__(self, target: Target) -> None:
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.credentials import Credentials

        super().__init__(target)
        self._request, credentials = (
            AWSRequest,
            Credentials(_ACCESS_KEY, _SECRET_KEY).get_frozen_credentials(),
        )
        self._signer = SigV4Auth(credentials, "bedrock-mantle", "us-east-1")

    async def call(self, prepared: Any) -> str:
        body = b'{"max_tokens":64000,"messages":[{"content":"%b","role":"user"}]}' % prepared.encode()
        url, headers = "https://bedrock-mantle.us-east-1.api.aws/v1/m", {"Content-Type": "application/json"}
        self._signer.add_auth(self._request("POST", url, headers, body))
        return await super().call(prepared)


CLIENTS = [
    # Both clouds' libraries are in this environment.
    Offer("ours_direct", "ours-openai2", Ours, OURS, (), "this library at the maker"),
    Offer("ours_signing", "ours-openai2", OursAndSignature, OURS, (), "the same, and botocore's signature"),
    Offer("ours_cloud", "ours-openai2", OursAtCloud, (*OURS, "botocore"), (), "this library at a cloud"),
]
