"""A server that embeds texts and images as Google, Voyage, Cohere and Jina do, and keeps books.

Google's requests are checked by the types of google-genai 3.6. The others have the forms that litellm 1.110
writes and reads. The same content always gets the same vector.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from google.genai import types

from counting_server import CountingServer

TEXT_PRICE, IMAGE_PRICE = Decimal("0.2") / 1_000_000, Decimal("0.45") / 1_000_000
"""USD of a token of gemini-embedding-2 in `prices.csv`."""

TEXT_TOKENS, IMAGE_TOKENS = 7, 258

Answer = tuple[int, Mapping[str, str], Any]


def vector(content: Any) -> list[float]:
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).digest()
    return [number / 255 for number in digest[:4]]


class VectorServer(CountingServer):
    """Attributes may be changed while it serves."""

    def __init__(self) -> None:
        super().__init__(self.answer)
        self.asked: list[list[Any]] = []
        """The inputs of each request."""
        self.bodies: list[Any] = []
        self.bill = Decimal(0)
        self.fault: Callable[[int], Answer | None] = lambda number: None
        self.tells_details = True

    def answer(self, path: str, headers: Mapping[str, str], body: Any) -> Answer:
        if (fault := self.fault(len(self.bodies))) is not None:
            self.bodies.append(None)
            return fault
        self.bodies.append(body)
        if path.endswith(":batchEmbedContents"):
            return 200, {}, self._google(body)
        if path.endswith("/v2/embed"):
            return self._cohere(body)
        inputs = [
            {"text": each} if isinstance(each, str) else each
            for each in body.get("inputs", body.get("input"))
        ]
        assert path.endswith("/multimodalembeddings" if "inputs" in body else "/embeddings"), path
        self.asked.append(inputs)
        entries = [
            {"object": "embedding", "index": n, "embedding": vector(each)} for n, each in enumerate(inputs)
        ]
        usage = {"total_tokens": TEXT_TOKENS * len(inputs), "prompt_tokens": TEXT_TOKENS * len(inputs)}
        return 200, {}, {"object": "list", "model": body["model"], "data": entries[::-1], "usage": usage}

    def _google(self, body: Any) -> Any:
        contents = [each["content"] for each in body["requests"]]
        for content in contents:
            types.Content.model_validate(content)
        self.asked.append([content["parts"] for content in contents])
        parts = [part for content in contents for part in content["parts"]]
        read = {"TEXT": TEXT_TOKENS * sum("text" in part for part in parts)}
        read["IMAGE"] = IMAGE_TOKENS * sum("text" not in part for part in parts)
        self.bill += TEXT_PRICE * read["TEXT"] + IMAGE_PRICE * read["IMAGE"]
        usage: dict[str, Any] = {"promptTokenCount": sum(read.values())}
        if self.tells_details:
            details = [{"modality": kind, "tokenCount": count} for kind, count in read.items() if count]
            usage["promptTokenDetails"] = details
        embeddings = [{"values": vector(content["parts"])} for content in contents]
        return {"embeddings": embeddings, "usageMetadata": usage}

    def _cohere(self, body: Any) -> Answer:
        images, texts = body.get("images"), body.get("texts")
        if (images is None) == (texts is None) or len(images or ()) > 1:
            return 400, {}, {"message": "give texts, or one image"}
        inputs = images or texts
        self.asked.append(inputs)
        units = {"images": 1} if images else {"input_tokens": TEXT_TOKENS * len(inputs)}
        embeddings = {"float": [vector(each) for each in inputs]}
        return 200, {}, {"id": "x", "embeddings": embeddings, "meta": {"billed_units": units}}


@contextmanager
def serving_vectors() -> Iterator[VectorServer]:
    with VectorServer() as server:
        yield server
