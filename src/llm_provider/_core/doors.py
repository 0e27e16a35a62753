"""The doors through which the core reaches features: names of modules, each imported when it is first needed.

`doors.remedies.word_remedy(...)` imports the module at its first use. Type checkers see the imports below.
"""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .._features.background import options as background_options
    from .._features.background import relay as background
    from .._features.background import submission as background_jobs
    from .._features.batch_hosts import refusals as batch_refusals
    from .._features.cache_care import maintenance as cache_maintenance
    from .._features.clouds import addresses as cloud_addresses
    from .._features.clouds import anthropic as cloud_anthropic
    from .._features.clouds import authorization, token_credential
    from .._features.clouds import identities as cloud_identities
    from .._features.clouds import price_names as cloud_price_names
    from .._features.clouds import routes as cloud_routes
    from .._features.decide import calibration, decisions
    from .._features.decide import operation as decide
    from .._features.estimates import estimates
    from .._features.evaluation import scoring
    from .._features.evaluation import summary as score_summaries
    from .._features.evidence import export as evidence
    from .._features.fallback import fallback, passed_over
    from .._features.foreign import mcp_servers as remote_servers
    from .._features.foreign import messages as foreign_messages
    from .._features.foreign import remedies, sdk_messages
    from .._features.fresh_prices import update as fresh_prices
    from .._features.hosts import compatible_hosts, host_routes
    from .._features.litellm import prices as litellm_prices
    from .._features.litellm import provider_names
    from .._features.mcp import listing as mcp_tools
    from .._features.models import known_models, retirements
    from .._features.models import token_count as token_counts
    from .._features.partial import deltas as partials
    from .._features.pictures import pictures, request_timeline
    from .._features.pictures import style as picture_style
    from .._features.progress import bar as progress_bar
    from .._features.prompt_caching import cached_contents, prefix_gate
    from .._features.prompt_caching import settings as prompt_caching
    from .._features.quirks import any_server, bills, failures, routers
    from .._features.recheck import run as recheck
    from .._features.rich_content import values as rich_content
    from .._features.score import operation as score
    from .._features.score import scores
    from .._features.second_level import access as second_level_access
    from .._features.second_level import settings as second_level_settings
    from .._features.second_level import two_level_cache
    from .._features.shared_budget import balance_file
    from .._features.shared_pace import shared_controller
    from .._features.telemetry import observer
    from .._features.tool_rounds import loop as tool_loop
    from .._features.uploads import uploads
    from .._features.user_limits import scope_limits
    from .._features.user_limits import settings as limit_settings
    from .._features.views import blocks as html
    from .._features.views import client_view, ledger_views, results_page, results_views

_MODULES = {
    "background": "background.relay",
    "background_jobs": "background.submission",
    "background_options": "background.options",
    "batch_refusals": "batch_hosts.refusals",
    "cache_maintenance": "cache_care.maintenance",
    "cloud_addresses": "clouds.addresses",
    "cloud_anthropic": "clouds.anthropic",
    "authorization": "clouds.authorization",
    "cloud_identities": "clouds.identities",
    "cloud_price_names": "clouds.price_names",
    "cloud_routes": "clouds.routes",
    "token_credential": "clouds.token_credential",
    "calibration": "decide.calibration",
    "decide": "decide.operation",
    "decisions": "decide.decisions",
    "estimates": "estimates.estimates",
    "score_summaries": "evaluation.summary",
    "scoring": "evaluation.scoring",
    "evidence": "evidence.export",
    "fallback": "fallback.fallback",
    "passed_over": "fallback.passed_over",
    "foreign_messages": "foreign.messages",
    "remote_servers": "foreign.mcp_servers",
    "remedies": "foreign.remedies",
    "sdk_messages": "foreign.sdk_messages",
    "fresh_prices": "fresh_prices.update",
    "compatible_hosts": "hosts.compatible_hosts",
    "host_routes": "hosts.host_routes",
    "litellm_prices": "litellm.prices",
    "provider_names": "litellm.provider_names",
    "mcp_tools": "mcp.listing",
    "partials": "partial.deltas",
    "picture_style": "pictures.style",
    "pictures": "pictures.pictures",
    "request_timeline": "pictures.request_timeline",
    "progress_bar": "progress.bar",
    "cached_contents": "prompt_caching.cached_contents",
    "prefix_gate": "prompt_caching.prefix_gate",
    "known_models": "models.known_models",
    "retirements": "models.retirements",
    "token_counts": "models.token_count",
    "prompt_caching": "prompt_caching.settings",
    "any_server": "quirks.any_server",
    "bills": "quirks.bills",
    "failures": "quirks.failures",
    "routers": "quirks.routers",
    "recheck": "recheck.run",
    "rich_content": "rich_content.values",
    "score": "score.operation",
    "scores": "score.scores",
    "second_level_access": "second_level.access",
    "second_level_settings": "second_level.settings",
    "two_level_cache": "second_level.two_level_cache",
    "balance_file": "shared_budget.balance_file",
    "shared_controller": "shared_pace.shared_controller",
    "tool_loop": "tool_rounds.loop",
    "uploads": "uploads.uploads",
    "observer": "telemetry.observer",
    "limit_settings": "user_limits.settings",
    "scope_limits": "user_limits.scope_limits",
    "client_view": "views.client_view",
    "html": "views.blocks",
    "ledger_views": "views.ledger_views",
    "results_page": "views.results_page",
    "results_views": "views.results_views",
}
"""Name of a door → the module of a feature behind it."""

read_served_by: Callable[..., Any]
"""Says who answered a reply. The package sets it, as results are in a room below the wire formats."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"there is no door {name!r}")
        module = globals()[name] = import_module(f"llm_provider._features.{_MODULES[name]}")
        return module
