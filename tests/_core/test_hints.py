"""Names of other libraries are errors that say what to write here."""

import copy
import pickle
import re
import sys
from typing import Any

import anthropic
import openai
import pytest
from google import genai

import llm_provider
from llm_provider import (
    Choice,
    Client,
    Delta,
    Embeddings,
    RateLimitError,
    Response,
    Results,
    SchemaMismatchError,
    ToolCall,
    Usage,
)
from llm_provider._core import hints
from llm_provider._core.types.messages import AssistantMessage
from llm_provider._features.foreign import remedies as tables

MESSAGE = AssistantMessage(role="assistant", content="4")
CALL = ToolCall(id="1", name="weather", arguments="{}")
RESPONSE = Response(
    choices=(Choice(text="4", message=MESSAGE, tool_calls=(CALL,)),), usage=Usage(), model="m", provider="p"
)
VALUES: dict[str, Any] = {
    "response": RESPONSE,
    "results": Results([RESPONSE]),
    "embeddings": Embeddings(vectors=([1.0],), usage=Usage(), model="m", provider="p"),
    "delta": Delta(text="4"),
    "error": RateLimitError("slow"),
    "mismatch": SchemaMismatchError("no", text="", validation_error=""),
    "llm_provider": llm_provider,
}


@pytest.mark.parametrize(
    ("code", "kind", "said"),
    [
        ("response.content", AttributeError, "Response has no attribute 'content': use .text"),
        ("response.choices[0].message.content", AttributeError, r"a dict: use message\['content'\]"),
        ("response.message.parsed", AttributeError, "use response.parsed"),
        ("response['choices'][0]", TypeError, r"Response is not a dict: use .text, or .choices$"),
        ("response['usage']", TypeError, r"Response is not a dict: use .usage$"),
        ("response._hidden_params['response_cost']", AttributeError, "use .cost$"),
        ("response._request_id", AttributeError, "use .id$"),
        ("response['text']", TypeError, "use .text"),
        ("response['content']", TypeError, "use .text"),
        ("response.choices[0]['message']", TypeError, "Choice is not a dict: use .message"),
        ("response[0]", TypeError, "neither a list nor a dict"),
        ("list(response)", TypeError, "neither a list nor a dict"),
        ("response.usage.prompt_tokens", AttributeError, "use .input_tokens"),
        ("response.usage['completion_tokens']", TypeError, "use .output_tokens"),
        ("response.usage.input_token_count", AttributeError, "use .input_tokens"),
        ("response.tool_calls[0].function.name", AttributeError, "use .name and .arguments"),
        ("response.tool_calls[0]['function']", TypeError, "use .name and .arguments"),
        ("response.model_dump()", AttributeError, r"use .to_dict\(\)"),
        ("response.citatons", AttributeError, "did you mean 'citations'"),
        ("results.to_df()", AttributeError, r"use .to_pandas\(\)"),
        ("results.dataframe()", AttributeError, r"use .to_pandas\(\)"),
        ("results['text']", TypeError, "use .texts"),
        ("embeddings.data[0].embedding", AttributeError, "use .vectors"),
        ("delta.choices[0].delta.content", AttributeError, "use .text"),
        ("error.status_code", AttributeError, "use .status"),
        ("error.content", AttributeError, "use results.ok"),
        ("mismatch.status_code", AttributeError, "use .status"),
        ("llm_provider.completion", AttributeError, r"use call\(model, messages\)"),
        ("llm_provider.call_mny", AttributeError, "did you mean 'call_many'"),
        ("llm_provider.Router", AttributeError, "fallback="),
        ("embeddings['data'][0]", TypeError, "use .vectors; embeddings"),
    ],
)
def test_a_name_of_another_library_is_answered_by_ours(code: str, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        eval(code, dict(VALUES))


@pytest.mark.parametrize(
    "name", ["completion", "acompletion", "OpenAI", "batch_completion", "embedding", "Resp0nse"]
)
def test_an_import_of_a_foreign_name_says_ours(name: str) -> None:
    with pytest.raises(ImportError, match=f"cannot import name '{name}' from 'llm_provider': (use|did you) "):
        exec(f"from llm_provider import {name}")
    assert not hasattr(llm_provider, name)
    with pytest.raises(ImportError, match=r"cannot import name 'zzz' from 'llm_provider' \("):
        exec("from llm_provider import zzz")


def _names_of(*packages: Any) -> list[str]:
    """The exceptions of SDKs, and their clients."""
    wanted = (Exception, openai.OpenAI, openai.AsyncOpenAI, anthropic.Anthropic, anthropic.AsyncAnthropic)
    return sorted(
        {name for each in packages for name, kind in list(vars(each).items())
         if isinstance(kind, type) and issubclass(kind, wanted) and name[0].isupper()
         and not issubclass(kind, Warning)}
    )  # fmt: skip


@pytest.mark.parametrize("name", _names_of(openai, anthropic, genai.errors))
def test_an_exception_or_a_client_of_an_sdk_has_its_name_here_or_a_hint(name: str) -> None:
    if name not in llm_provider.__all__:
        with pytest.raises(AttributeError, match=f"has no attribute '{name}': (use|did you mean) "):
            getattr(llm_provider, name)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("drop_params", "write unsupported='drop'"),
        ("success_callback", r"write Client\(on_result=function\)"),
        ("num_retries", "write max_retries="),
        ("set_verbose", "LLM_PROVIDER_LOG"),
        ("api_key", r"write Client\(api_key=...\), or api_key=... in a call"),
        ("cache_dir", r"write Client\(cache_dir=...\)$"),
        ("anything", "no such setting"),
    ],
)
def test_a_setting_of_the_module_is_refused(name: str, remedy: str) -> None:
    with pytest.raises(AttributeError, match=f"nothing reads an attribute '{name}' of .*: .*{remedy}"):
        setattr(llm_provider, name, True)
    assert name not in vars(llm_provider)


def test_a_client_an_estimate_a_ledger_and_an_answer_say_it_too(client: Client) -> None:
    stream = client.stream("gpt-6.1-sol", "1+1?")
    values = {
        "client": client,
        "estimate": client.estimate("gpt-6.1-sol", ["a"]),
        "ledger": client.usage,
        "stream": stream,
        "response": client.call("gpt-6.1-sol", "1+2?"),
        "others": [client.call(model, "1+2?") for model in ("claude-sonnet-5-5", "gemini-3.8-flash")],
    }
    for code, said in {
        "client.chat.completions.create()": "use .call",
        "client.models.generate_content(model='m', contents='1+1?')": r"use client\.call\(model, messages\)$",
        "client.models.generate_content_stream(model='m')": r"use client\.stream\(",
        "client.models.embed_content()": r"use client\.embed\(",
        "client.models.list()": r"use client\.models\(\), or client\.models\(provider, live=True\)",
        "client.models.retrieve('m')": r"use client\.models\(\)",
        "client.models.count_tokens(model='m', contents='1+1?')": r"use client\.count_tokens\(model, ",
        "client.batches.create(input_file_id='f')": r"use client\.call_many\(.*, delivery='batch'\)",
        "client.batches.retrieve('b')": r"use client\.batches\(\), whose items have status\(\)",
        "client.chats.create(model='m')": r"use a list of messages, .* \.call\(model, messages\)$",
        "client.files.upload(file='a.pdf')": r"use a path in the prompt, .*Path\('a\.pdf'\)",
        "client.files.create(file=None, purpose='batch')": "batches need no file$",
        "client.caches.create(model='m')": "use .call.model, messages, prompt_caching=True",
        "client.interactions.create(model='m')": "endpoint='interactions'",
        "client.images.generate(prompt='a')": "use the provider's SDK",
        "client.aio.models": "use .acall",
        "stream.text_stream": "use delta.text of each delta",
        "stream.get_final_message()": "use stream.response, after",
        "stream.get_final_completion()": "use stream.response, after",
        "stream.get_final_text()": "use stream.response, after",
        "estimate.price": "use .cost",
        "ledger.total_cost": "use .spent",
        "stream.text": "use stream.response",
        "response.message.content": "use message",
        "others[0].message.content": "use message",
        "others[1].message.content": "use message",
        "Response.from_dict(response.to_dict()).message.content": "use message",
    }.items():
        with pytest.raises(AttributeError, match=said):
            eval(code, {"Response": Response, **values})
    stream.close()


async def test_a_stream_that_is_awaited_says_how_to_read_it(client: Client) -> None:
    for stream in (client.stream("gpt-6.1-sol", "1+1?"), client.astream("gpt-6.1-sol", "1+1?")):
        with pytest.raises(TypeError, match=r"write `async for delta in astream\(...\)` without await"):
            await stream  # type: ignore[misc]  # as users of openai's SDK write


def test_the_habit_of_the_openai_sdk_leads_to_the_text() -> None:
    with pytest.raises(AttributeError, match=r"a message is a dict: use .*, or response\.text$"):
        RESPONSE.choices[0].message.content  # type: ignore[attr-defined]  # noqa: B018  # what users write


@pytest.mark.parametrize(
    "value", [RESPONSE, VALUES["results"], CALL, RESPONSE.usage, VALUES["embeddings"], MESSAGE]
)
def test_protocols_find_nothing_and_search_nothing(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for copied in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert (type(copied), copied) == (type(value), value)
    assert getattr(value, "nothing", 3) == 3
    assert not hasattr(value, "data_frame")
    # A search for a similar name would fail.
    monkeypatch.setitem(sys.modules, "difflib", None)
    for name in ("_ipython_canary_method_should_not_exist_", "_repr_latex_", "__array__", "__wrapped__"):
        assert getattr(value, name, None) is None


def test_an_error_inside_a_property_is_not_hidden() -> None:
    class Broken(hints.Hinting):
        @property
        def text(self) -> Any:
            return None.lower()  # type: ignore[attr-defined]  # wrong on purpose

    with pytest.raises(AttributeError, match="'NoneType' object has no attribute 'lower'"):
        Broken().text  # noqa: B018 - it raises


CLASSES = [owner for owner in tables._read_table() if owner not in ("call", "embed") and "-" not in owner]


@pytest.mark.parametrize("kind", sorted(CLASSES))
def test_the_tables_name_what_there_is(kind: str) -> None:
    special: dict[str, Any] = {
        "_Running": llm_provider.Stream,
        "llm_provider": llm_provider,
        "AssistantMessage": dict,
        "LLMError": VALUES["error"],
        "Response[]": Response,
        "Client.models": object,
        "Client.batches": object,
    }
    known = dir(special.get(kind) or getattr(llm_provider, kind))
    for name, remedy in tables.remedies_of(kind).items():
        # The attributes of an answer are read as such, and not like keys.
        assert (name in known) == kind.endswith("[]")
        assert special.get(kind) is not object or hasattr(eval(kind), name)
        named = re.match(r"\.(\w+)|(\w+)\(", remedy)
        if named is not None:
            assert named[1] in known if named[1] else hasattr(llm_provider, named[2]) or named[2] == "type"


_OFTEN_EMPTY = re.compile(
    "refusal|function_calls?|tool_call|thought|thinking|reasoning|cache|_details|parse|object|structured"
)
"""Names of other libraries whose value is false for a plain answer."""


def test_what_a_hint_names_is_true_where_the_value_elsewhere_is(client: Client) -> None:
    answer = client.call("gpt-6.1-sol", "1+1?")
    for value in (answer, answer.choices[0], answer.usage):
        for name, remedy in tables.remedies_of(type(value).__name__).items():
            if named := re.match(r"\.[^,;]+", remedy):
                assert bool(eval(f"value{named[0]}")) != bool(_OFTEN_EMPTY.search(name)), name
    refused = client.call("gpt-6.1-sol", "please refuse")
    assert refused.text
    condition = re.match(r"\.[^,;]+", tables.remedies_of("Response")["refusal"])
    assert condition is not None
    assert eval(f"refused{condition[0]}")
