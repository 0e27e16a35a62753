"""The identity of the environment at each cloud, by the cloud's own library: no key is needed.

Entra's is `DefaultAzureCredential` of azure-identity, Google's the application default credentials of
google-auth, and AWS's the chain of botocore, which signs each request (SigV4). The thread that fetches the
first token imports the library.
"""

from __future__ import annotations

import asyncio
import calendar
import functools
import importlib.util
import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from ..._core.errors import LLMError, MissingAPIKeyError, MissingDependencyError
from ..._core.requests.api_keys import APIKey
from ..._core.runtime import clock
from ..._core.runtime.imports import install_command
from .addresses import Cloud, find_priced_region, find_region
from .token_credential import SIGNED_TIME, Source, Token, TokenCredential

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..._core.requests.api_keys import EnvFile
    from ..._core.requests.routing import Target


class _Library(NamedTuple):
    """The library of a cloud's identities."""

    module: str
    extra: str
    """The extra that installs it; empty where a dependency does."""
    variables: tuple[str, ...]
    """Variables that name the identity. None of them is a secret."""
    remedy: str
    missing: tuple[str, ...]
    """Names of the exceptions that mean that there is no identity, or none that is signed in."""
    open_source: Callable[[str, str], Source]
    """Opens a source for an audience and a region."""


def identity_of(target: Target, env_file: EnvFile | None) -> TokenCredential:
    """The environment's identity at the cloud of a target. Nothing is fetched yet."""
    cloud, keys = target.route.cloud, target.route.key_variables
    assert cloud is not None, "the caller has looked"
    library = _LIBRARIES[cloud.identity]
    region = ""
    if cloud.identity == "aws":
        region = find_priced_region(cloud, target.base_url) or find_region(env_file)
    elif cloud.identity == "entra" and (scope := os.environ.get("AZURE_SCOPE", "").strip()):
        cloud = cloud._replace(audience=scope)
    names = tuple(os.environ.get(variable, "") for variable in library.variables)
    access_key = os.environ.get("AWS_ACCESS_KEY_ID", "")
    if cloud.identity == "aws" and access_key.startswith("AKIA"):
        # The keys of a role, ASIA…, change every hour.
        names = (*names, access_key)
    return _identity(cloud, target.provider, keys, region, names)


@functools.lru_cache(maxsize=256)
def _identity(
    cloud: Cloud, provider: str, keys: tuple[str, ...], region: str, names: tuple[str, ...]
) -> TokenCredential:
    """One object for each identity of a process, so that each token is fetched once."""
    library, audience = _LIBRARIES[cloud.identity], cloud.audience
    try:
        missing = importlib.util.find_spec(library.module) is None
    except ModuleNotFoundError:  # its package
        missing = True
    if missing:
        raise MissingDependencyError(
            f"no API key for {provider}: set {keys[0]}; or, for an identity without a key, "
            f"{install_command(library.extra)}, and {library.remedy}",
            provider=provider,
        )

    def describe(error: BaseException) -> LLMError | None:
        names = [known.__name__ for known in type(error).__mro__]
        # Google's library says of some errors that they pass.
        if getattr(error, "retryable", False) or not any(name in library.missing for name in names):
            return None
        detail = next(iter(str(error).strip().splitlines()), type(error).__name__)
        return MissingAPIKeyError(f"no credential: {library.remedy} ({detail[:300]})")

    name = (cloud.identity, audience, region, *names)
    return TokenCredential(
        *name, open_source=lambda: library.open_source(audience, region), describe=describe
    )


def _open_entra(audience: str, region: str) -> Source:
    from azure.identity import DefaultAzureCredential

    credential = DefaultAzureCredential()

    def fetch(loop: asyncio.AbstractEventLoop) -> Token:
        token = credential.get_token(audience)
        return Token(APIKey(token.token), float(token.expires_on))

    return fetch


def _open_google(audience: str, region: str) -> Source:
    import google.auth
    from google.auth.transport.requests import Request

    credentials: Any = google.auth.default(scopes=[audience])[0]

    def fetch(loop: asyncio.AbstractEventLoop) -> Token:
        credentials.refresh(Request())
        project = getattr(credentials, "quota_project_id", None)
        others = (("x-goog-user-project", project),) if project else ()
        # The library's moment is UTC without saying so.
        end = None if credentials.expiry is None else calendar.timegm(credentials.expiry.utctimetuple())
        return Token(APIKey(credentials.token), None if end is None else float(end), others)

    return fetch


@dataclass(frozen=True, slots=True)
class _SigningKey(Token):
    """AWS's credentials of the moment, which sign each request."""

    signer: Any = field(default=None, repr=False)
    """botocore's, with the credentials, the service and the region."""

    def headers(self, method: str, url: str, body: bytes, skew: float) -> dict[str, str]:
        """The headers of a signature (SigV4), which botocore makes. The SDK writes the type of the body."""
        from botocore.awsrequest import AWSRequest

        signer, token = self.signer, self.signer.credentials.token
        sent = {"X-Amz-Date": time.strftime(SIGNED_TIME, time.gmtime(clock.time() + skew))}
        if token:
            sent["X-Amz-Security-Token"] = token
        request = AWSRequest(method, url, {"Content-Type": "application/json", **sent}, body)
        request.context["timestamp"] = sent["X-Amz-Date"]
        signature = signer.signature(
            signer.string_to_sign(request, signer.canonical_request(request)), request
        )
        names = ";".join(("content-type", "host", *map(str.lower, sent)))
        start = f"AWS4-HMAC-SHA256 Credential={signer.scope(request)}"
        return {"Authorization": f"{start}, SignedHeaders={names}, Signature={signature}", **sent}

    def secrets(self) -> tuple[APIKey, ...]:
        """The secret key and the session's token; the signature is of no use for another request."""
        frozen = self.signer.credentials
        return tuple(APIKey(text) for text in (frozen.secret_key, frozen.token, frozen.access_key) if text)


def _open_aws(audience: str, region: str) -> Source:
    import botocore.session
    from botocore.auth import SigV4Auth

    # A new session reads the files again, which other programs renew.
    session = botocore.session.Session()

    def fetch(loop: asyncio.AbstractEventLoop) -> Token:
        credentials = session.get_credentials()
        if credentials is None:
            raise MissingAPIKeyError(f"no credential: {_LIBRARIES['aws'].remedy}")
        frozen = credentials.get_frozen_credentials()
        # botocore renews them 15 minutes before their end, when it is asked.
        return _SigningKey(APIKey(frozen.access_key), None, (), SigV4Auth(frozen, audience, region))

    return fetch


_LIBRARIES = {
    "entra": _Library(
        "azure.identity",
        "azure",
        ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_TOKEN_CREDENTIALS", "AZURE_AUTHORITY_HOST"),
        "run `az login`, or set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET",
        ("ClientAuthenticationError", "CredentialUnavailableError"),
        _open_entra,
    ),
    "google": _Library(
        "google.auth",
        "",
        ("GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_CONFIG"),
        "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS",
        ("DefaultCredentialsError", "RefreshError"),
        _open_google,
    ),
    "aws": _Library(
        "botocore",
        "bedrock",
        ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_ROLE_ARN", "AWS_CONFIG_FILE"),
        "run `aws sso login`, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        (
            "NoCredentialsError", "PartialCredentialsError", "ProfileNotFound", "SSOTokenLoadError",
            "TokenRetrievalError", "UnauthorizedSSOTokenError", "SSOError",
        ),
        _open_aws,
    ),
}  # fmt: skip
