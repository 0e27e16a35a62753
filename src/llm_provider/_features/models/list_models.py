"""The models that a provider says a key reaches."""

import asyncio

from ..._core.client.call_runner import CallRunner
from ..._core.errors import LLMError, RequestError, cite
from ..._core.formats import registry
from ..._core.journey.attempt import scrub_error, send_with_retries
from ..._core.requests.api_keys import Credential, find_accounts, find_key
from ..._core.requests.routing import ROUTES, Target, resolve
from ..._core.runtime import event_loop
from ..._core.runtime.warning import warn_user
from ..._core.settings import Settings
from .known_models import Model, check_provider, complete_models, list_models
from .model_lists import LISTS, ListedModel


def find_models(runner: CallRunner, provider: str | None, *, live: bool) -> list[Model]:
    """The models of the tables, or with `live` those that a key of the client reaches."""
    if not isinstance(live, bool):
        raise RequestError(f"live must be True or False, not {cite(live)}")
    settings, defaults = runner.engine.settings, runner.defaults
    if not live:
        return list_models(runner.prices(), provider, settings.hosts)
    if provider is None:
        raise RequestError("live=True asks one provider: write models('openai', live=True)")
    check_provider(provider, settings.hosts)
    event_loop.refuse_own_thread("models")
    runner.engine.refuse_closed()
    target, key = _find_destination(provider, defaults.get("base_url"), defaults.get("api_key"), settings)
    runner.start()
    listed = event_loop.wait(_ask_for_models(target, key, settings.max_retries))
    return complete_models(runner.prices(), provider, listed)


def _find_destination(
    provider: str, base_url: str | None, api_key: Credential | None, settings: Settings
) -> tuple[Target, Credential]:
    """The server, which must have a list, and the first key to ask, of the client or the environment."""
    route = settings.hosts.get(provider) or ROUTES[provider]
    if route.cloud is not None or route.adapter not in LISTS:
        raise RequestError(f"{provider} gives no list of models: leave live out", provider=provider)
    target = resolve(f"{provider}/any", base_url, hosts=settings.hosts)
    if target.servers[0].base_url is None:
        raise RequestError(
            f"live=True needs the server of {provider}: set {target.route.base_url_variable}, or give "
            "base_url= to Client",
            provider=provider,
        )
    if api_key is None:
        accounts = find_accounts(provider, target.route.key_variables, settings.keys)
        api_key = accounts[0][0] if accounts else find_key(target)
    return target, api_key


async def _ask_for_models(target: Target, key: Credential, max_retries: int) -> list[ListedModel]:
    """Ask for the models that a key reaches. Of several servers, those that answer should have the same."""
    servers = target.servers
    # One of several may be down for long.
    max_retries = max_retries if len(servers) == 1 else min(max_retries, 1)
    requests = (_ask_server(server, key, max_retries) for server in servers)
    lists = await asyncio.gather(*requests, return_exceptions=True)
    answered = [listed for listed in lists if isinstance(listed, list)]
    for listed in lists:
        if isinstance(listed, BaseException) and (not answered or not isinstance(listed, LLMError)):
            raise listed
    if any({model.name for model in listed} != {model.name for model in answered[0]} for listed in answered):
        message = f"the servers of {target.provider} list different models; give them hosts of their own"
        warn_user(message, stacklevel=2)
    return answered[0]


async def _ask_server(target: Target, key: Credential, max_retries: int) -> list[ListedModel]:
    name = target.route.adapter
    try:
        return await send_with_retries(lambda: LISTS[name](target, key), registry.load(name), max_retries)
    except LLMError as error:
        raise scrub_error(error, key, "the list of models", target.provider) from None
