"""Where a cloud serves models: the addresses of resources, projects and regions.

Each row of `ROUTES` that belongs to a cloud has a `Cloud`. Facts are from the SDKs' platform clients
(openai 2.54, anthropic 2.12, google-genai 3.4) and of litellm 1.106, whose variables are read too.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from ..._core.errors import RequestError

if TYPE_CHECKING:
    from ..._core.requests.api_keys import EnvFile


class Cloud(NamedTuple):
    """What a row of a cloud has, and a provider with one address and API keys has not."""

    identity: Literal["entra", "google", "aws"]
    """Who the caller is where no key is set: see `identities`."""
    audience: str
    """What tokens and signatures are for: a scope of Entra or of Google, or the name of a service of AWS."""
    server: str
    """The server with fields in braces, from `FIELDS`; empty where only a variable has it."""
    server_variables: tuple[str, ...]
    """Environment variables that hold the server's URL. The first that is set counts."""
    path: str
    """The path below the server, with the same fields. It may be written in the URL or not."""
    models: str
    """A pattern of the models that the row serves. Its first group is the name that is sent."""
    maker: str = ""
    """The provider whose models these are, for their capabilities and tokens; empty for models of many."""
    operation: str = ""
    """The operation below the base URL, with the model in it; empty where the body names the model."""
    version: str = ""
    """The version of Anthropic's format, where the body has it and not a header."""
    key_header: str = ""
    """The header of a key; empty where it is sent as a bearer token."""
    express_variable: str = ""
    """The variable of a key that has a project of its own, so that the address has none."""


FIELDS = {
    "resource": ("ANTHROPIC_FOUNDRY_RESOURCE",),
    "region": ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_REGION_NAME"),
    "project": ("GOOGLE_CLOUD_PROJECT", "VERTEXAI_PROJECT", "VERTEX_PROJECT", "ANTHROPIC_VERTEX_PROJECT_ID"),
    "location": ("GOOGLE_CLOUD_LOCATION", "VERTEXAI_LOCATION", "VERTEX_LOCATION", "CLOUD_ML_REGION"),
}
"""Field of an address → environment variables that hold it. The first that is set counts."""

_DEFAULTS = {"location": "global"}
_EXPRESS = ("https://aiplatform.googleapis.com", "/v1")
"""The server and the path of Vertex AI for keys of its express mode, as google-genai writes them."""
_FIELD = re.compile(r"\{(\w+)\}")
_VALUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:-]*")


def find_address(cloud: Cloud, provider: str, base_url: str | None, env_file: EnvFile | None) -> str:
    """The base URL of a cloud's models, which has their resource, project and region.

    The user's `base_url` may have the cloud's path. `RequestError` names the variable of what is not set.
    """
    server = base_url or _read(cloud.server_variables, env_file)
    if not server and not cloud.server:
        raise RequestError(
            f"{provider} needs the address of your resource: set {cloud.server_variables[0]}="
            "'https://NAME.openai.azure.com', or pass base_url=",
            provider=provider,
        )
    is_express = cloud.express_variable and _read((cloud.express_variable,), env_file)
    template, path = _EXPRESS if is_express else (cloud.server, cloud.path)

    def fill(text: str) -> str:
        return _FIELD.sub(lambda match: _value(match[1], provider, env_file), text)

    address, path = server.rstrip("/") or fill(template), fill(path)
    # The variables of the SDKs may have the beginning of the path already.
    steps = path.split("/")
    beginnings = ("/".join(steps[:count]) for count in range(len(steps), 1, -1))
    return address.removesuffix(next((end for end in beginnings if address.endswith(end)), "")) + path


def find_region(env_file: EnvFile | None = None) -> str:
    """The region of AWS; a `RequestError` if it is not set."""
    return _value("region", "AWS", env_file)


_REGION = re.compile(r"/locations/([^/]+)|[/.]bedrock(?:-runtime|-mantle)(?:-fips)?\.([a-z0-9-]+)\.")


def find_priced_region(cloud: Cloud, base_url: str | None) -> str | None:
    """The region of Google or AWS that a call is billed in, and signed for; None where nothing tells it.

    >>> from .routes import CLOUD_ROWS
    >>> vertex = next(row.cloud for row in CLOUD_ROWS if row.provider == "vertex_ai")
    >>> find_priced_region(vertex, "https://aiplatform.googleapis.com/v1/projects/p/locations/global")
    'global'
    """
    if cloud.identity == "entra":
        return None
    match = _REGION.search(base_url or "")
    field = "location" if cloud.identity == "google" else "region"
    return next(filter(None, match.groups())) if match else _read(FIELDS[field], None) or _DEFAULTS.get(field)


@functools.lru_cache(maxsize=1024)
def plain_name(model: str) -> str:
    """The name that a model has at its maker.

    >>> plain_name("us.anthropic.claude-haiku-4-5-20251001-v1:0"), plain_name("claude-sonnet-4-5@20250929")
    ('claude-haiku-4-5-20251001', 'claude-sonnet-4-5-20250929')
    >>> plain_name("openai.gpt-6.1-sol"), plain_name("gpt-6.1-sol")
    ('gpt-6.1-sol', 'gpt-6.1-sol')
    """
    name = re.sub(r"^(?:(?:us|eu|jp|au|apac|global|us-gov)\.)?(?:anthropic|openai|google)\.", "", model)
    return re.sub(r"(-v\d+(:\d+)?|@default)$", "", name).replace("@", "-")


def _value(name: str, provider: str, env_file: EnvFile | None) -> str:
    if name == "host":
        location = _value("location", provider, env_file)
        # As the SDKs of Google and Anthropic write them.
        hosts = {"global": "aiplatform", "us": "aiplatform.us.rep", "eu": "aiplatform.eu.rep"}
        return f"{hosts.get(location, f'{location}-aiplatform')}.googleapis.com"
    variables = FIELDS[name]
    value = _read(variables, env_file) or _DEFAULTS.get(name, "")
    if not value and name == "region":
        profile = os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE") or "default"
        value = _read_profile(os.environ.get("AWS_CONFIG_FILE") or "~/.aws/config", profile)
    if not value:
        raise RequestError(f"{provider} needs a {name}: set {variables[0]}", provider=provider)
    if not _VALUE.fullmatch(value):
        # It becomes a part of a host.
        raise RequestError(f"{variables[0]} must be the name of a {name}, not {value!r}", provider=provider)
    return value


@functools.lru_cache(maxsize=16)
def _read_profile(path: str, profile: str) -> str:
    """The region of AWS's profile in a file; empty without one, and without botocore."""
    with contextlib.suppress(Exception):  # a file that botocore cannot read has no region
        from botocore.configloader import load_config

        return str(load_config(path)["profiles"][profile]["region"])
    return ""


def _read(variables: Sequence[str], env_file: EnvFile | None) -> str:
    """The first variable that is set, in the environment or else in the `.env` file."""
    for variable in variables:
        value = os.environ.get(variable, "").strip()
        if value:
            return value
    return next(filter(None, map(env_file.get, variables)), "") if env_file is not None else ""
