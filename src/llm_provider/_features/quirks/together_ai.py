"""Together: log probabilities are bare numbers."""

from ..._core.json_values import JSONMapping, JSONObject


def write_logprobs(piece: JSONObject, delta: JSONMapping) -> None:
    """Write the bare number of a streamed token in the form of a whole answer."""
    number = piece.get("logprobs")
    if number is not None and not isinstance(number, dict):
        piece["logprobs"] = {
            "tokens": [delta.get("content")],
            "token_logprobs": [number],
            "token_ids": [delta.get("token_id")],
        }
