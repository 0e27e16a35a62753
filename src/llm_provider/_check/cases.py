"""One question to an account, its traffic, and what the library made of it: a case of a recording.

`check` plays a case live, and the tests of tests/recorded play it again from its recording.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from .._errors import LLMError
from .._json_values import JSONObject

if TYPE_CHECKING:
    from .._client.client import Client
    from .traffic import Exchange


@dataclass(slots=True)
class Case:
    """What is asked. `result` is what the library made of the replies, `answer` the object that it gave."""

    name: str
    operation: str
    model: str
    inputs: Any = None
    parameters: JSONObject = field(default_factory=dict)
    exchanges: list[Exchange] = field(default_factory=list)
    result: JSONObject = field(default_factory=dict)
    answer: Any = None
    error: LLMError | None = None

    def play(self, client: Client, **options: Any) -> None:
        """Ask, and fill in the last three fields. `options` are parameters that no recording has."""
        self.error = None
        try:
            self.answer, self.result = self._ask(client, {**self.parameters, **options})
        except LLMError as error:
            self.error, self.result = error, {"error": type(error).__name__, "status": error.status}

    def _ask(self, client: Client, parameters: JSONObject) -> tuple[Any, JSONObject]:
        if self.operation == "models":
            models = client.models(self.model.partition("/")[0], live=True)
            return models, {"models": [model.name for model in models]}
        if self.operation == "batch":
            batch = client.submit_many(self.model, self.inputs, **parameters)
            return batch, {"status": batch.last_status, "rows": batch.counts.total}
        if self.operation == "embed":
            vectors = client.embed(self.model, self.inputs, **parameters)
            numbers = [[round(float(number), 6) for number in vector[:4]] for vector in vectors]
            return vectors, {
                "vectors": numbers,
                "dimensions": vectors.dimensions,
                "usage": asdict(vectors.usage),
            }
        streamed = None
        if self.operation == "stream":
            with client.stream(self.model, self.inputs, **parameters) as deltas:
                streamed = "".join(delta.text for delta in deltas)
            response = deltas.response
        else:
            response = client.call(self.model, self.inputs, **parameters)
        return response, {
            "text": response.text,
            "finish_reason": response.finish_reason,
            "tool_calls": [[call.id, call.name, call.arguments] for call in response.tool_calls],
            "usage": {name: count for name, count in asdict(response.usage).items() if count},
            "model": response.model,
            "served_by": response.served_by.to_dict() if response.served_by else {},
            "message": sorted(response.message),
            **({} if streamed is None else {"streamed": streamed}),
        }
