"""The user's scores in the forms of Every Eval Ever 0.3.0 and of inspect's log, for each model."""

import contextlib
import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ..._core import doors
from ..._core.errors import LLMError
from ..._core.json_values import JSONObject
from ..._core.types.results_table import name_model
from .container import write_json

_SCHEMA = "0.3.0"
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]|^\.+")
"""What the name of a folder does not have."""
_LINE_ENDS = re.compile("\x85|\u2028|\u2029".encode())
_STOPS = {"length": "max_tokens", "refusal": "content_filter"}
"""Inspect's words for finish reasons, where they differ."""
_READ, _WRITTEN = "cache_read_input_tokens", "cache_write_input_tokens"


class ScoreRecords:
    """Makes the parts of a file about the scores of its rows; `about` is its manifest.

    A model has three parts: the record of its mean and a line for each sample, both of Every Eval Ever, and a
    log of inspect, one JSON text whose samples are a line each. The samples of a question are its epochs.
    """

    def __init__(self, about: JSONObject) -> None:
        self._about, self._models = about, dict[str, _Model]()
        self._answered, self._failed = set[tuple[str | None, str]](), list[JSONObject]()

    def add(self, row: JSONObject) -> None:
        """Add a row. One without a score has no line."""
        result = row["result"]
        if result.get("error"):
            # What its model is called, the answers say.
            self._failed += [row] if "score" in row else []
            return
        self._answered.add((result["provider"], str(result["model"])))
        if "score" in row:
            self._add(row, result["model"])

    def _add(self, row: JSONObject, name: str) -> None:
        times = [request["created"] for request in row["requests"] if "created" in request]
        key = f"{row['result']['provider']}/{name}"
        if key not in self._models:
            first = row["result"] | {"model": name}
            self._models[key] = _Model(key, self._about, first, min(times, default=0.0))
        self._models[key].add(row, times)

    def finish(self) -> Iterator[tuple[str, list[bytes]]]:
        """The name of each part, and its lines without their ends."""
        for row in self._failed:
            provider, name = row["result"]["provider"], str(row["result"]["model"])
            self._add(row, name_model(provider, name, self._answered))
        for model in self._models.values():
            yield f"{model.part}_samples.jsonl", model.samples
            yield f"{model.part}.json", [write_json(model.describe())]
            yield model.log, [model.write_log_head(), *model.log_lines, b"]}"]


class _Model:
    """The scored rows of a model."""

    def __init__(self, key: str, about: JSONObject, first: JSONObject, begin: float) -> None:
        self._key, self._name, self._about, self._first = key, str(about["evaluation"]), about, first
        self._ids, self._begin, self._end = list[int](), begin, begin
        self._questions = defaultdict[Any, list[float]](list)
        self._epochs, self._failed = 1, 0
        self._digest, self._usage = hashlib.sha256(), Counter[str]()
        self.samples, self.log_lines = list[bytes](), list[bytes]()
        folders = (self._name, first["provider"], first["model"])
        digest = hashlib.sha256(write_json(folders)).hexdigest()
        # A record must have a name with the form of a random UUID.
        end = f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"
        words = [_UNSAFE.sub("_", str(folder))[:80] or "_" for folder in folders]
        self.part = "/".join(["data", *words, end])
        # Inspect lists the logs whose names begin with a time.
        self.log = f"inspect/{_write_time(begin).replace(':', '-')}_{words[0]}_{end}.json"

    def add(self, row: JSONObject, times: list[float]) -> None:
        result, choices = row["result"], None
        if "scores" in result:
            # Scores choose the most likely text.
            prompt, texts = result["context"], [_choose(result)["text"]]
            choices = [score["text"] for score in result["scores"]]
        elif "decisions" in result:
            prompt, texts = result["input"], [_choose(result)["text"]]
        else:
            prompt, texts = result["prompt"], [choice["text"] for choice in result.get("choices", ())]
            prompt = "" if prompt is None else prompt
        raw = prompt if isinstance(prompt, str) else json.dumps(prompt, sort_keys=True)
        usage: Mapping[str, int] = Counter(result["usage"] or {})
        used = {name: usage[name] for name in ("input_tokens", "output_tokens")}
        used["total_tokens"] = sum(used.values())
        line: JSONObject = {
            "schema_version": _SCHEMA, "evaluation_id": f"{self._name}/{self._key}", "model_id": self._key,
            "evaluation_name": self._name, "sample_id": str(row["index"]), "interaction_type": "single_turn",
            "sample_hash": hashlib.sha256(raw.encode("utf-8", "surrogatepass")).hexdigest(),
            "input": {"raw": raw, "reference": [], "choices": choices}, "answer_attribution": [],
        }  # fmt: skip
        counted = {"token_usage": dict(used)}
        # Inspect counts the tokens that the prompt cache gave or took beside the others.
        used["input_tokens"] -= usage[_READ] + usage[_WRITTEN]
        used |= {
            "input_tokens_cache_read": usage[_READ], "input_tokens_cache_write": usage[_WRITTEN],
            "reasoning_tokens": usage["reasoning_output_tokens"],
        }  # fmt: skip
        self._usage.update(used)
        if result.get("error"):
            line["error"] = str(LLMError.from_dict(result))
            self._failed += 1
        scores, usage = row.get("sample_scores"), used
        # A question is what it is in the table of the scores.
        is_known = result.get("prompt", raw) is not None
        question = self._questions[write_json([raw, result["metadata"]]) if is_known else row["index"]]
        for epoch, each in enumerate(scores or [row["score"]], start=1):
            if each is None:
                continue
            part, own = slice(None) if scores is None else slice(epoch - 1, epoch), dict(line)
            own |= {"output": {"raw": texts[part]}, "evaluation": {"score": each, "is_correct": each >= 1}}
            own |= counted if scores is None else counted | {"metadata": {"epoch": str(epoch)}}
            sample = self._describe_sample(row, each, prompt if _is_plain(prompt) else raw, usage, part)
            sample |= {"epoch": epoch, "choices": choices}
            self.log_lines.append((b"," if self.samples else b"") + write_json(sample))
            # Programs that read lines take these characters for ends.
            self.samples.append(
                _LINE_ENDS.sub(lambda end: b"\\u%04x" % ord(end[0].decode()), write_json(own))
            )
            self._digest.update(self.samples[-1] + b"\n")
            question.append(float(each))
            # What the samples of a call share is in the first one.
            counted, usage, self._epochs = {}, {}, max(self._epochs, epoch)
        self._ids.append(row["index"])
        self._end = max([self._end, *times])

    def _describe_sample(
        self, row: JSONObject, score: float, prompt: Any, usage: dict[str, int], part: slice
    ) -> JSONObject:
        result = row["result"]
        answers, failed = [], result.get("error")
        for choice in result["choices"][part] if "choices" in result else [] if failed else [_choose(result)]:
            calls = []
            for call in choice["tool_calls"]:
                arguments: Any = call["arguments"]
                with contextlib.suppress(ValueError, RecursionError):
                    arguments = json.loads(arguments)
                own = arguments if isinstance(arguments, dict) else {"arguments": call["arguments"]}
                calls.append({"id": call["id"], "function": call["name"], "arguments": own})
            reasoning, reason = choice["reasoning"], choice["finish_reason"]
            content = [{"type": "reasoning", "reasoning": reasoning}] if reasoning else []
            content.append({"type": "text", "text": choice["text"]})
            message: JSONObject = {"role": "assistant", "source": "generate", "content": content}
            message["tool_calls"] = calls or None
            answers.append({"message": message, "stop_reason": _STOPS.get(reason, reason)})
        known = ("served_by", "cached", "provider", *(("cost", "price") if usage else ()))
        return {
            "id": row["index"], "input": prompt, "target": "",
            "messages": [
                *([] if isinstance(prompt, str) else prompt), *(each["message"] for each in answers[:1]),
            ],
            "output": {
                "model": str(result["model"]), "choices": answers, "usage": usage or None,
                "metadata": {"llm_provider": {name: result.get(name) for name in known}},
                "response_id": result.get("id"),
            },
            "error": failed and {"message": result["message"], "traceback": failed, "traceback_ansi": failed},
            "scores": {self._name: {"value": score}},
            "metadata": {"metadata": result["metadata"]},
            "model_usage": {self._key: usage} if usage else {},
        }  # fmt: skip

    def _average(self) -> float:
        """The mean of the questions' means, as the table of the scores has it."""
        average: Callable[[Sequence[float]], float] = doors.score_summaries.average
        return average(list(map(average, self._questions.values())))

    def describe(self) -> JSONObject:
        who = {name: str(value) for name, value in (self._first.get("served_by") or {}).items()}
        parts = {"name": "engine", "version": "engine_version"}
        engine = {name: who[key] for name, key in parts.items() if key in who}
        details = {"score": self._average(), "uncertainty": {"num_samples": len(self._questions)}}
        return {
            "schema_version": _SCHEMA,
            "evaluation_id": f"{self._name}/{self._key}",
            "retrieved_timestamp": str(int(self._end)),
            "source_metadata": {
                "source_type": "evaluation_run", "source_organization_name": "unknown",
                "evaluator_relationship": "other",
            },
            "model_info": {
                "name": self._first["model"], "id": self._key,
                "inference_platform": who.get("host", self._first["provider"]),
                **({"inference_engine": engine} if engine else {}),
                "additional_details": {"deployment_type": "unknown", "model_availability": "unknown", **who},
            },
            "eval_library": {"name": "llm_provider", "version": self._about["versions"]["llm-provider-call"]},
            "evaluation_results": [{
                "evaluation_name": self._name,
                "source_data": {"dataset_name": self._name, "source_type": "other"},
                "metric_config": {"lower_is_better": False},
                "score_details": details,
            }],
            "detailed_evaluation_results": {
                "format": "jsonl", "file_path": f"{self.part}_samples.jsonl", "hash_algorithm": "sha256",
                "checksum": self._digest.hexdigest(), "total_rows": len(self.samples),
            },
        }  # fmt: skip

    def write_log_head(self) -> bytes:
        """Inspect's log up to its samples, in inspect's own order: who reads no samples stops there."""
        git, count, rows = self._about["git"], len(self._ids), len(self.samples)
        mean = {"mean": {"name": "mean", "value": self._average()}}
        score = {"name": self._name, "scorer": self._name, "scored_samples": count, "metrics": mean}
        fields = {
            "version": 2,
            "status": "success",
            "eval": {
                "created": _write_time(self._begin), "task": self._name, "model": self._key,
                "config": {"epochs": self._epochs, "epochs_reducer": ["mean"]} if self._epochs > 1 else {},
                "eval_id": self.part[-36:], "task_id": self.part[-36:], "run_id": self.part[-36:],
                "dataset": {"name": self._name, "samples": count, "sample_ids": self._ids},
                "revision": git and {"type": "git", "origin": "", **git},
                "packages": {"llm_provider": self._about["versions"]["llm-provider-call"]},
            },
            "plan": {},
            "results": {"total_samples": rows, "completed_samples": rows - self._failed, "scores": [score]},
            "stats": {
                "started_at": _write_time(self._begin), "completed_at": _write_time(self._end),
                "model_usage": {self._key: dict(self._usage)},
            },
        }  # fmt: skip
        written = (write_json(name) + b":" + write_json(value) for name, value in fields.items())
        return b"{" + b",".join(written) + b',"samples":['


def _choose(result: JSONObject) -> JSONObject:
    if "decisions" in result:
        read = doors.decisions.Decision.from_dict
        text = "\n".join(f"{each.name}: {each.describe()}" for each in map(read, result["decisions"]))
    else:
        text = max(result["scores"], key=lambda score: score["logprob"])["text"]
    return {"text": text, "finish_reason": "stop", "tool_calls": [], "reasoning": ""}


def _is_plain(prompt: Any) -> bool:
    """Whether inspect reads a prompt as messages: those with text alone."""
    return isinstance(prompt, list) and all(
        isinstance(message.get("content"), str) and message.keys() == {"role", "content"}
        for message in prompt
    )


def _write_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
