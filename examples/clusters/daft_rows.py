"""Daft: an asynchronous class answers a column, and an error becomes a column, as it would end the query."""

import daft

from llm_provider import Client, LLMError

PROMPTS = [f"row {number}" for number in range(199)] + [""]
ANSWER = daft.DataType.struct({"text": daft.DataType.string(), "error": daft.DataType.string()})


@daft.cls(max_concurrency=2)
class Ask:
    """A client in each worker."""

    def __init__(self, model: str):
        self.client = Client()
        self.model = model

    @daft.method(return_dtype=ANSWER)
    async def __call__(self, prompt: str):
        """Answer a row."""
        try:
            return {"text": (await self.client.acall(self.model, prompt)).text, "error": None}
        except LLMError as error:
            return {"text": None, "error": type(error).__name__}


ask = Ask("gpt-6.1-sol")
rows = daft.from_pydict({"prompt": PROMPTS}).with_column("answer", ask(daft.col("prompt"))).to_pylist()
errors = [row["answer"]["error"] for row in rows if row["answer"]["error"]]
print(f"{len(rows)} rows, {len(errors)} failed: {errors[0]}")
