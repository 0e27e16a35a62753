"""Servers nobody here wrote: llama.cpp's with a tiny model of random weights, and litellm's proxy."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from foreign_servers import answers, free_port, running
from llm_provider.simulator import Simulator

CONTEXT = 512
"""Tokens a conversation and its answer may have."""

PROXY = Path(__file__).parents[2] / ".venv-proxy" / "bin" / "litellm"
PROXY_KEY = "sk-proxy"

EMBEDDING, HEADS, FEED_FORWARD, BLOCKS = 64, 4, 128, 2
WORDS = [
    first + vowel + last for first in "bdfgklmnprstvz" for vowel in "aeiou" for last in ("", "n", "r", "st")
]
TEMPLATE = (
    "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)


class LlamaServer(NamedTuple):
    """Where the server answers, and under which name."""

    base_url: str
    model: str
    process: subprocess.Popen[bytes]
    context: int = CONTEXT


def write_model(path: Path, *, pooled: bool = False) -> None:
    """A llama of two blocks in the GGUF format, about 1 MB, always the same.

    An embedding model is `pooled`: the vector of a text is the mean of its tokens' vectors.

    Its words come out with readable text: the rows of the output matrix for bytes and control tokens are
    zero, so beside the large random logits of the words they are never chosen.
    """
    gguf = pytest.importorskip("gguf")
    numpy = pytest.importorskip("numpy")
    pieces = ["▁" + word for word in WORDS]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *pieces]
    kind = gguf.TokenType
    types = [kind.UNKNOWN, kind.CONTROL, kind.CONTROL, *[kind.BYTE] * 256, *[kind.NORMAL] * len(pieces)]
    random = numpy.random.default_rng(20)

    def weights(*shape: int, scale: float = 0.3) -> object:
        return random.normal(0.0, scale, shape).astype(numpy.float32)

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(EMBEDDING)
    writer.add_block_count(BLOCKS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(EMBEDDING // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    if pooled:
        writer.add_pooling_type(gguf.PoolingType.MEAN)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(types)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template(TEMPLATE)
    writer.add_tensor("token_embd.weight", weights(len(tokens), EMBEDDING, scale=1.0))
    for block in range(BLOCKS):
        ones = numpy.ones(EMBEDDING, dtype=numpy.float32)
        writer.add_tensor(f"blk.{block}.attn_norm.weight", ones)
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            writer.add_tensor(f"blk.{block}.{part}.weight", weights(EMBEDDING, EMBEDDING))
        writer.add_tensor(f"blk.{block}.ffn_norm.weight", ones)
        writer.add_tensor(f"blk.{block}.ffn_gate.weight", weights(FEED_FORWARD, EMBEDDING))
        writer.add_tensor(f"blk.{block}.ffn_up.weight", weights(FEED_FORWARD, EMBEDDING))
        writer.add_tensor(f"blk.{block}.ffn_down.weight", weights(EMBEDDING, FEED_FORWARD))
    writer.add_tensor("output_norm.weight", numpy.ones(EMBEDDING, dtype=numpy.float32))
    output = weights(len(tokens), EMBEDDING, scale=1.0)
    output[: -len(pieces)] = 0.0  # type: ignore[index]  # an array
    writer.add_tensor("output.weight", output)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@contextmanager
def serve(model: Path, log: Path, **settings: object) -> Iterator[LlamaServer]:
    """Run llama_cpp.server on a free loopback port until the block ends. `settings` are further options."""
    port = free_port()
    options = {
        "model": model,
        "model_alias": "tiny",
        "host": "127.0.0.1",
        "port": port,
        "n_ctx": CONTEXT,
        "n_threads": 1,
        "n_threads_batch": 1,
        # Else a new request ends the stream of another one.
        "interrupt_requests": False,
        **settings,
    }
    command = [sys.executable, "-m", "llama_cpp.server"]
    for name, value in options.items():
        command += [f"--{name}", str(value)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LLAMA_")}
    with running(command, environment, log, lambda: answers(port, "/v1/models")) as process:
        yield LlamaServer(f"http://127.0.0.1:{port}/v1", "local/tiny", process)


@pytest.fixture(scope="session")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    write_model(path)
    return path


@pytest.fixture(scope="module")
def llama_address(model_file: Path) -> Iterator[str]:
    pytest.importorskip("xllamacpp")
    program = Path(__file__).with_name("xllama_server.py")
    command = [sys.executable, str(program), str(model_file)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="session")
def embedding_llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    """A server with an embedding model, whose vectors have `EMBEDDING` dimensions."""
    pytest.importorskip("llama_cpp")
    folder = tmp_path_factory.mktemp("llama")
    write_model(folder / "pooled.gguf", pooled=True)
    with serve(folder / "pooled.gguf", folder / "log", embedding=True) as server:
        yield server


def llama_server(**settings: object) -> Any:
    """A fixture of a server with these options."""

    @pytest.fixture(scope="session")
    def server(model_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
        pytest.importorskip("llama_cpp")
        with serve(model_file, tmp_path_factory.mktemp("llama") / "log", **settings) as server:
            yield server

    return server


llama = llama_server()
"""It wants no key."""
locked_llama = llama_server(api_key="open-sesame")
unpooled_llama = llama_server(embedding=True)
"""It embeds with a chat model, which has a vector for each token and none for a text."""
tool_llama = llama_server(chat_format="chatml-function-calling", n_ctx=4 * CONTEXT)
"""It reads and calls tools."""


@pytest.fixture
def two_llamas(model_file: Path, tmp_path: Path) -> Iterator[tuple[LlamaServer, LlamaServer]]:
    """Two servers with one model. Their output is in the files `a` and `b`."""
    pytest.importorskip("llama_cpp")
    with serve(model_file, tmp_path / "a") as one, serve(model_file, tmp_path / "b") as two:
        yield one, two


class LitellmProxy(NamedTuple):
    """litellm's proxy, and the simulator behind it, which is the provider of all its models."""

    url: str
    simulator: Simulator


@pytest.fixture(scope="session")
def running_proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LitellmProxy]:
    if not PROXY.exists():
        pytest.skip("litellm's proxy is installed by `make test-integration`")
    folder = tmp_path_factory.mktemp("proxy")
    port = free_port()
    with Simulator() as simulator:
        gemini = simulator.url("gemini")
        served = {
            "openai/gpt-6.1-sol": simulator.url("openai"),
            "openai/text-embedding-3-small": simulator.url("openai"),
            "anthropic/claude-sonnet-5-5": simulator.url("anthropic"),
            "gemini/gemini-3.8-flash": f"{gemini}/v1beta",
        }
        configuration = {
            "model_list": [
                {
                    "model_name": model.partition("/")[2],
                    "litellm_params": {"model": model, "api_base": base, "api_key": "any"},
                }
                for model, base in served.items()
            ],
            "general_settings": {"master_key": PROXY_KEY},
            "router_settings": {"num_retries": 0, "disable_cooldowns": True},
        }
        # JSON is YAML.
        file = folder / "proxy.yaml"
        file.write_text(json.dumps(configuration), encoding="utf-8")
        command = [str(PROXY), "--config", str(file), "--host", "127.0.0.1", "--port", str(port)]
        environment = {
            **{name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ},
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            # For the path that passes Gemini's requests through.
            "GEMINI_API_BASE": gemini,
            "GEMINI_API_KEY": "any",
        }
        with running(command, environment, folder / "log", lambda: answers(port, "/health/liveliness")):
            yield LitellmProxy(f"http://127.0.0.1:{port}", simulator)


@pytest.fixture
def litellm_proxy(running_proxy: LitellmProxy) -> Iterator[LitellmProxy]:
    """The proxy, before a provider without faults."""
    running_proxy.simulator.clear()
    yield running_proxy
    running_proxy.simulator.clear()
