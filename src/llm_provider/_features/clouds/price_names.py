"""The names of a cloud's models in `prices.csv`, which hold the region, and the row that each region pays.

A name begins with its region as litellm spells it: `eu/gpt-5.4`, `us-gov-west-1/openai.gpt-oss-20b-1:0`, or
an inference profile of Bedrock, `eu.anthropic.claude-opus-5-5`. Without a region it is global. `regional`
stands for the regions whose prices are the same. docs/prices.md has the rules.

Only names of clouds load this module, because its patterns take a millisecond to compile.
"""

import re
from collections.abc import Iterator

from ..._core.money.price_rows import CLOUDS

SAME_BILL = {"azure_ai": "azure", "bedrock_mantle": "bedrock"}
"""An API of a cloud → the one whose prices hold where it has no row. genai-prices does not part the two."""

ZONES = {"azure": ("us/", "eu/"), "azure_ai": ("us/", "eu/"), "vertex_ai": ()} | dict.fromkeys(
    ("bedrock", "bedrock_mantle"), ("us.", "eu.", "jp.", "au.", "apac.", "in.")
)
"""The data zones and inference profiles of each cloud that `regional` may stand for."""

_REGION = re.compile(r"(us|eu|apac|us-gov|provisioned|[a-z]+(?:-[a-z]+)+-?[0-9]+)/(.+)")
_PROFILE = re.compile(r"^(?:global|us|eu|jp|au|apac|in|us-gov|regional)\.")
_GLOBAL = ("global/", "global-standard/", "converse/", "invoke/")
_ARN = re.compile(r"arn:[a-z-]+:bedrock:([a-z0-9-]*):[0-9]*:(?:foundation-model|inference-profile)/(.+)")
_VERSION = re.compile(r"(?:@default|:[0-9]+|(?<=.)-v[0-9]+)")


def name_in_region(provider: str, model: str, region: str | None = None) -> str:
    """The name under which `PriceTable` prices a model in a region, data zone or location of a cloud.

    A region or profile in the name decides by itself. With the region `provisioned`, for throughput that is
    bought by the hour, it is a name without a price.

    >>> name_in_region("azure", "gpt-5.4", "eu")
    'eu/gpt-5.4'
    >>> name_in_region("vertex_ai", "claude-opus-5-5", "global")
    'claude-opus-5-5'
    >>> name_in_region("bedrock", "eu.anthropic.claude-opus-5-5", "eu-west-1")
    'eu.anthropic.claude-opus-5-5'
    """
    for prefix in _GLOBAL:
        model = model.removeprefix(prefix)
    profiled = provider.startswith("bedrock") and (_PROFILE.match(model) or model.startswith("arn:"))
    is_whole = region in (None, "", "global") or profiled or _REGION.match(model)
    return model if is_whole else f"{region}/{model}"


def drop_region(provider: str, model: str) -> str:
    """The name of a cloud's model without its region or profile.

    >>> drop_region("bedrock", "eu-west-1/eu.anthropic.claude-opus-5-5")
    'anthropic.claude-opus-5-5'
    """
    if provider in CLOUDS:
        region = _REGION.fullmatch(model)
        model = region[2] if region else model.removeprefix("regional/")
        if provider.startswith("bedrock"):
            model = _PROFILE.sub("", model, count=1)
    return model


def is_model_name(model: str) -> bool:
    """Whether a name of a cloud in `prices.csv` names a model, and not only its price in a region.

    >>> [name for name in ("gpt-5.4", "eu/gpt-5.4", "regional.amazon.nova-pro-v1:0") if is_model_name(name)]
    ['gpt-5.4']
    """
    return _REGION.fullmatch(model) is None and not model.startswith("regional")


def spell_cloud_name(provider: str, model: str) -> Iterator[str]:
    """The names under which a cloud's model may be listed, the most specific first. All keep its date.

    >>> list(spell_cloud_name("vertex_ai", "us-east5/claude-opus-5-5"))
    ['us-east5/claude-opus-5-5', 'regional/claude-opus-5-5', 'claude-opus-5-5']
    >>> list(spell_cloud_name("azure", "eu/gpt-5.4"))
    ['eu/gpt-5.4', 'regional/gpt-5.4']
    """
    arn = _ARN.fullmatch(model)
    model = name_in_region(provider, model) if arn is None else name_in_region(provider, arn[2], arn[1])
    while True:
        yield from _in_wider_regions(provider, model)
        ends = [match for match in _VERSION.finditer(model) if match.end() == len(model)]
        if not ends:
            return
        model = model[: ends[0].start()]


def _in_wider_regions(provider: str, model: str) -> Iterator[str]:
    yield model
    region = _REGION.fullmatch(model)
    if provider == "vertex_ai":
        if region is not None and region[1] != "provisioned":
            yield from (f"regional/{region[2]}", region[2])
    elif region is not None and provider.startswith("bedrock"):
        if _PROFILE.match(region[2]):
            yield from _in_wider_regions(provider, region[2])
        elif region[1].startswith("us-gov"):
            yield f"us-gov.{region[2]}"
        elif region[1] != "provisioned":
            yield region[2]
    elif model.startswith("global."):
        yield model.removeprefix("global.")
    else:
        zone = next(filter(model.startswith, ZONES[provider]), None)
        if zone is not None:
            yield f"regional{zone[-1]}{model.removeprefix(zone)}"
