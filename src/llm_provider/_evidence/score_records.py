"""The user's scores as records of Every Eval Ever 0.3.0, one for each model, with a line for each row."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from .._json_values import JSONObject
from .json_lines import write_json

_SCHEMA = "0.3.0"
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]|^\.+")
"""What the name of a folder does not have."""


class ScoreRecords:
    """Makes the parts of a file about the scores of its rows; `name` is that of the evaluation."""

    def __init__(self, name: str, version: str) -> None:
        self._name, self._version = name, version
        self._models: dict[str, _Model] = {}

    def add(self, row: JSONObject) -> tuple[str, bytes] | None:
        """The name of the part for a scored row, and its line there; None for a row without a score."""
        result, score = row["result"], row.get("score")
        if score is None or result.get("error") or "scores" in result:
            return None
        key = f"{result['provider']}/{result['model']}"
        model = self._models.setdefault(key, _Model(self._name_part(result), result))
        line = write_json(self._describe_sample(key, row, float(score))) + b"\n"
        model.count += 1
        model.total += float(score)
        model.digest.update(line)
        model.latest = max([model.latest, *(request.get("created", 0.0) for request in row["requests"])])
        return f"{model.part}_samples.jsonl", line

    def finish(self) -> dict[str, bytes]:
        """The part with the record of each model, by name."""
        return {
            f"{model.part}.json": write_json(self._describe(key, model))
            for key, model in self._models.items()
        }

    def _name_part(self, result: JSONObject) -> str:
        """The folder and the name that a record must have, whose end has the form of a random UUID."""
        folders = (self._name, result["provider"], result["model"])
        digest = hashlib.sha256(write_json(folders)).hexdigest()
        end = f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"
        return "/".join(["data", *(_UNSAFE.sub("_", str(folder))[:80] or "_" for folder in folders), end])

    def _describe_sample(self, model: str, row: JSONObject, score: float) -> JSONObject:
        result, usage = row["result"], row["result"]["usage"]
        prompt = result["prompt"]
        raw = prompt if isinstance(prompt, str) else json.dumps(prompt, sort_keys=True)
        counts = {name: usage[name] for name in ("input_tokens", "output_tokens")}
        return {
            "schema_version": _SCHEMA,
            "evaluation_id": f"{self._name}/{model}",
            "model_id": model,
            "evaluation_name": self._name,
            "sample_id": str(row["index"]),
            "sample_hash": hashlib.sha256(raw.encode("utf-8", "surrogatepass")).hexdigest(),
            "interaction_type": "single_turn",
            "input": {"raw": raw, "reference": []},
            "output": {"raw": [choice["text"] for choice in result["choices"]]},
            "answer_attribution": [],
            "evaluation": {"score": score, "is_correct": score >= 1},
            "token_usage": {**counts, "total_tokens": sum(counts.values())},
        }

    def _describe(self, key: str, model: _Model) -> JSONObject:
        who = {name: str(value) for name, value in (model.first["served_by"] or {}).items()}
        engine = {
            name: who[field]
            for name, field in (("name", "engine"), ("version", "engine_version"))
            if field in who
        }
        return {
            "schema_version": _SCHEMA,
            "evaluation_id": f"{self._name}/{key}",
            "retrieved_timestamp": str(int(model.latest)),
            "source_metadata": {
                "source_type": "evaluation_run",
                "source_organization_name": "unknown",
                "evaluator_relationship": "other",
            },
            "model_info": {
                "name": model.first["model"],
                "id": key,
                "inference_platform": who.get("host", model.first["provider"]),
                **({"inference_engine": engine} if engine else {}),
                "additional_details": {"deployment_type": "unknown", "model_availability": "unknown", **who},
            },
            "eval_library": {"name": "llm_provider", "version": self._version},
            "evaluation_results": [
                {
                    "evaluation_name": self._name,
                    "source_data": {"dataset_name": self._name, "source_type": "other"},
                    "metric_config": {"lower_is_better": False},
                    "score_details": {
                        "score": model.total / model.count,
                        "uncertainty": {"num_samples": model.count},
                    },
                }
            ],
            "detailed_evaluation_results": {
                "format": "jsonl",
                "file_path": f"{model.part}_samples.jsonl",
                "hash_algorithm": "sha256",
                "checksum": model.digest.hexdigest(),
                "total_rows": model.count,
            },
        }


class _Model:
    """The sums of the scored rows of a model."""

    def __init__(self, part: str, first: dict[str, Any]) -> None:
        self.part, self.first = part, first
        self.count, self.total, self.latest = 0, 0.0, 0.0
        self.digest = hashlib.sha256()
