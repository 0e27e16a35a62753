"""`prompt_caching="explicit"` on the simulator: stored, read, kept, and billed."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from google.genai.types import CachedContent

from llm_provider import Client, Ledger
from llm_provider.simulator import Fault, Simulator

MODEL = "gemini-3.8-flash"
DOCUMENT = "The tenant pays the rent on the first day. " * 600
QUESTIONS = ["Who?", "When?", "Why?"]


def write_prices(folder: Path, rent: str) -> Path:
    fields = "provider,model,variant,min_input_tokens,effective_from,input,cache_read,output,cache_storage"
    path = folder / "prices.csv"
    path.write_text(f"{fields}\ngemini,{MODEL},standard,0,,1,0.1,10,{rent}\n")
    return path


@pytest.mark.parametrize("rent", ["12", ""])
@pytest.mark.filterwarnings("ignore:.*no price for cache_storage")
def test_a_stored_beginning_is_read_by_all_and_billed_once(
    simulator: Simulator, tmp_path: Path, rent: str
) -> None:
    prices = write_prices(tmp_path, rent)
    simulator.configure(prices=str(prices))
    options: dict[str, Any] = {"system": DOCUMENT, "max_tokens": 50}
    with Client(cache_dir=tmp_path / "plain") as client:
        plain = client.call_many(MODEL, QUESTIONS, **options)
    before = simulator.ledger().billed
    with Client(cache_dir=tmp_path / "cache", prices=prices, ledger=tmp_path / "ledger") as client:
        answers = client.call_many(MODEL, QUESTIONS, prompt_caching="explicit", **options)
    assert answers.texts == plain.texts
    stored = -(-len(DOCUMENT) // 4)
    assert [answer.usage.cache_read_input_tokens for answer in answers] == [stored] * 3
    assert sum(answer.usage.cache_write_input_tokens or 0 for answer in answers) == stored
    after, noted = simulator.ledger().billed, Ledger.read(tmp_path / "ledger")
    assert before is not None
    assert after is not None
    if rent:
        # Five minutes, which are on no bill of the simulator.
        assert noted.spent == after - before + Decimal(stored * 12 * 300) / 3600 / 1_000_000
    else:
        assert noted.spent == after - before - Decimal(stored) / 1_000_000
        unknown = [answer.cost_unknown for answer in answers if answer.cost is None]
        assert unknown == [f"gemini/{MODEL} (standard): no price for cache_storage"]


def test_what_is_gone_is_stored_again_and_a_refusal_is_sent_whole(
    simulator: Simulator, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"system": DOCUMENT, "max_tokens": 50, "prompt_caching": "explicit"}
    with Client(cache_dir=tmp_path, prices=write_prices(tmp_path, "12")) as client:
        client.call(MODEL, "Who?", **options)
        simulator.clear()
        assert client.call(MODEL, "When?", **options).usage.cache_write_input_tokens
        simulator.inject(Fault(status=400), match="caches.create")
        refused = client.call(MODEL, "Why?", **{**options, "system": DOCUMENT + "More."})
        assert refused.prompt_cache_miss is not None
        assert refused.prompt_cache_miss.reason.startswith("not_stored")
        short = client.call(MODEL, "Why?", **{**options, "system": "Short."})
        assert short.prompt_cache_miss is not None
        assert short.prompt_cache_miss.reason == "below_minimum"


def ask(simulator: Simulator, method: str, path: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = Request(f"{simulator.url('gemini')}/v1beta/{path}", data, method=method)
    with urlopen(request) as reply:
        return json.loads(reply.read())


def test_a_content_has_the_fields_of_the_sdk_and_refuses_what_google_refuses(simulator: Simulator) -> None:
    contents = [{"role": "user", "parts": [{"text": DOCUMENT}]}]
    made = ask(
        simulator,
        "POST",
        "cachedContents",
        {"model": f"models/{MODEL}", "ttl": "300s", "contents": contents},
    )
    read = CachedContent.model_validate(made)
    assert (read.name, read.expire_time is not None) == (made["name"], True)
    longer = ask(simulator, "PATCH", f"{made['name']}?updateMask=ttl", {"ttl": "600s"})
    assert longer["expireTime"] > made["expireTime"]
    asked = {"contents": [{"role": "user", "parts": [{"text": "Who?"}]}], "cachedContent": made["name"]}
    path = f"models/{MODEL}:generateContent"
    usage = ask(simulator, "POST", path, asked)["usageMetadata"]
    assert usage["cachedContentTokenCount"] == made["usageMetadata"]["totalTokenCount"]
    with pytest.raises(HTTPError, match="400") as caught:
        ask(simulator, "POST", path, {**asked, "tools": []})
    caught.value.close()
    assert ask(simulator, "DELETE", made["name"]) == {}
    with pytest.raises(HTTPError, match="403") as caught:
        ask(simulator, "POST", path, asked)
    caught.value.close()
