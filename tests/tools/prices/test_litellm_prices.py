"""litellm's price map: where it is, and whose models it has; golden pairs have what it is read as."""

import sys

import pytest

from llm_provider._core.requests.routing import ROUTES, Route
from price_sources import entry
from tools.prices import litellm_prices


def test_without_litellm_its_map_must_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", [])
    # Imported by another test, it would be found without its path.
    monkeypatch.delitem(sys.modules, "litellm", raising=False)
    with pytest.raises(FileNotFoundError, match="litellm is not installed; give the path"):
        litellm_prices.installed_file()


@pytest.mark.parametrize("route", ROUTES.values(), ids=list(ROUTES))
def test_every_route_is_read_under_its_name_in_the_map(route: Route) -> None:
    for name in route.litellm_names:
        listed = entry(name, source="a serverless list")
        key = litellm_prices.key_of(f"{route.litellm_names[0]}/org/tiny", listed)
        assert key == (route.provider, "org/tiny")
