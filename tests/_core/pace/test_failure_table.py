"""The table of failures: what providers answer, in their own words, and the class that it means.

The bodies are those of public reports and of providers' pages; docs/reports.md names the reports.
"""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider._core import errors
from llm_provider._core.errors import LLMError
from llm_provider._core.formats.shared.errors import error_fields, from_answer, reports_error
from llm_provider._core.pace.failure_table import CONSEQUENCES, RULES, consequence_of, find_rule, words_in
from llm_provider._core.pace.failures import is_outage

SUSPENDED = "Your account org-4 <ak-f> is suspended due to insufficient balance, please recharge your account"
NO_PACKAGE = "Insufficient balance or no resource package. Please recharge."
GEMINI = "You exceeded your current quota, please check your plan and billing details. "
METRIC = "* Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_requests"
SPENT = (
    "Your team 16f2151a-40f4-4a80-8ad0-cae00c27e8dd has either used all available credits or reached its "
    "monthly spending limit. To continue making API requests, please purchase more credits."
)


def error(message: str, code: Any = None, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, "code": code, **fields}}


EMPTY = errors.QuotaExceededError
TOO_LONG = errors.ContextWindowExceededError
TOO_FAST, REFUSED = errors.RateLimitError, errors.RefusalError
NO_MODEL, WRONG = errors.NotFoundError, errors.BadRequestError
PER_MINUTE = "Rate limit reached for model `m` in organization `org_1` on tokens per minute (TPM)"
RAW = json.dumps(error(SUSPENDED))
BEHIND = f"Error from provider(zai,glm-4.6: 429): {json.dumps(error(NO_PACKAGE, '1113'))}Error: x"

ANSWERS: list[tuple[int, Any, type[LLMError]]] = [
    # An empty account.
    (
        400,
        error("Your credit balance is too low to access the Anthropic API.", type="invalid_request_error"),
        EMPTY,
    ),
    (
        400,
        error("You have reached your specified API usage limits. You will regain access on 2026-04-01."),
        EMPTY,
    ),
    (400, error("You have reached your specified workspace API usage limits. You will regain access"), EMPTY),
    (429, error("Extra usage is required for long context requests.", type="rate_limit_error"), EMPTY),
    (
        429,
        error("Your account is not active, please check your billing details.", "billing_not_active"),
        EMPTY,
    ),
    (429, error("Your account is not active, please check your billing details."), EMPTY),
    (429, error(GEMINI, "insufficient_quota", type="insufficient_quota"), EMPTY),
    (
        429,
        error(
            "Your prepayment credits are depleted. Please go to AI Studio", 429, status="RESOURCE_EXHAUSTED"
        ),
        EMPTY,
    ),
    (429, error(f"{GEMINI}{METRIC}, limit: 0, model: gemini-3.1-pro\nPlease retry in 25.4s.", 429), EMPTY),
    (429, error(NO_PACKAGE, "1113"), EMPTY),
    (429, error("余额不足或无可用资源包,请充值。", "1113"), EMPTY),
    (429, error("余额不足或无可用资源包,请充值。"), EMPTY),
    (429, error(f"[1113][{NO_PACKAGE}][20260922]", type="rate_limit_error"), EMPTY),
    (429, error(NO_PACKAGE, type="1113"), EMPTY),
    (429, error("已达到 5 小时的使用上限。您的限额将在 07:41:44 重置。", "1308"), EMPTY),
    (429, error(SUSPENDED, type="exceeded_current_quota_error"), EMPTY),
    (429, error("Provider returned error", 429, metadata={"raw": RAW}), EMPTY),
    (429, error(BEHIND), EMPTY),
    (
        403,
        error("Key limit exceeded (total limit). Manage it using https://openrouter.ai/settings/keys", 403),
        EMPTY,
    ),
    (402, error("Insufficient Balance", "invalid_request_error", type="unknown_error"), EMPTY),
    (402, {"error": "You have exceeded your monthly included credits for Inference Providers."}, EMPTY),
    (403, {"code": "permission-denied", "error": SPENT}, EMPTY),
    (429, {"error": SPENT}, EMPTY),
    (403, {"error": "You have run out of credits or need a Grok subscription."}, EMPTY),
    (
        412,
        error(
            "Account x is suspended, possibly due to reaching the monthly spending limit",
            "PRECONDITION_FAILED",
        ),
        EMPTY,
    ),
    (
        400,
        {"code": "Arrearage", "message": "Access denied, please make sure your account is in good standing."},
        EMPTY,
    ),
    (403, error("Access denied due to overdue account"), EMPTY),
    (500, error("insufficient balance (1008)", type="api_error"), EMPTY),
    (429, error("insufficient balance (1008)", type="insufficient_balance_error"), EMPTY),
    (200, {"choices": None, "base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}, EMPTY),
    (403, {"code": 30001, "message": "Sorry, your account balance is insufficient", "data": None}, EMPTY),
    (403, {"code": "INSUFFICIENT_BALANCE", "message": "Insufficient account balance"}, EMPTY),
    (429, {"message": "You are using a Trial key, which is limited to 1000 API calls / month."}, EMPTY),
    (429, {"message": "Too many tokens per day, please wait before trying again."}, EMPTY),
    (400, error("API access is blocked", "blocked_api_access"), EMPTY),
    (402, {"error": "You have depleted your monthly included credits."}, EMPTY),
    (401, error("Your account does not have enough credits"), EMPTY),
    (
        403,
        {"error": {"message": "Out of call volume quota. Quota will be replenished in 4.06:10:23."}},
        EMPTY,
    ),
    (429, error("Rate limit exceeded: free-models-per-day. Add 10 credits to unlock more", 429), EMPTY),
    (429, {"detail": "Monthly quota exceeded"}, EMPTY),
    # Too fast.
    (429, {"message": "You are using a Trial key, which is limited to 40 API calls / minute."}, TOO_FAST),
    (429, {"message": "Too many tokens, please wait before trying again."}, TOO_FAST),
    (
        400,
        {"__type": "com.amazon.coral#ThrottlingException", "message": "Too many tokens, please wait"},
        TOO_FAST,
    ),
    (429, error(f"{GEMINI}{METRIC}, limit: 5, model: m\nPlease retry in 25.4s.", 429), TOO_FAST),
    (
        429,
        error("Your account org-4 <ak-f> request reached organization max RPM: 3, please try again"),
        TOO_FAST,
    ),
    (429, error("High concurrency usage of this API", "1302"), TOO_FAST),
    (200, {"base_resp": {"status_code": 1002, "status_msg": "rate limit exceeded(RPM)"}}, TOO_FAST),
    (498, error("Flex tier capacity exceeded", "capacity_exceeded"), errors.OverloadedError),
    # Too long.
    (400, "This model's maximum prompt length is 131072 but the request contains 136973 tokens.", TOO_LONG),
    (
        400,
        {"error": "This model's maximum prompt length is 131072 but the request contains 136973 tokens."},
        TOO_LONG,
    ),
    (
        422,
        error("Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000"),
        TOO_LONG,
    ),
    (422, {"error": "Input validation error: `inputs` must have less than 512 tokens. Given: 600"}, TOO_LONG),
    (400, {"message": "Input is too long for requested model."}, TOO_LONG),
    (
        400,
        {"message": "The model returned the following errors: prompt is too long: 903884 tokens > 200000"},
        TOO_LONG,
    ),
    (400, error("Prompt exceeds max length", "1261"), TOO_LONG),
    (400, error("Prompt too long", "1261"), TOO_LONG),
    (400, error("tokens in request more than max tokens allowed", "1210"), TOO_LONG),
    (400, error("Input length (265330) exceeds model's maximum context length (262144)."), TOO_LONG),
    (400, error("Input length 131393 exceeds the maximum allowed input length of 131040 tokens."), TOO_LONG),
    (
        400,
        error("request (66202 tokens) exceeds the available context size (65536 tokens), try increasing it"),
        TOO_LONG,
    ),
    (400, error("input length and `max_tokens` exceed context limit: 170636 + 34048 > 200000"), TOO_LONG),
    (
        400,
        error("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
        TOO_LONG,
    ),
    (
        400,
        error("Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum"),
        TOO_LONG,
    ),
    (400, {"error": "the input length exceeds the context length"}, TOO_LONG),
    (400, {"message": "too many tokens: total number of tokens in the prompt cannot exceed 4081"}, TOO_LONG),
    (400, error("Range of input length should be [1, 30720]", "invalid_parameter_error"), TOO_LONG),
    (500, error("input is too large to process. increase the physical batch size", 500), TOO_LONG),
    (
        429,
        error("Request too large for gpt-4o in organization org on tokens per min (TPM)", "tokens"),
        TOO_LONG,
    ),
    (413, error("Request too large for model `m`", "rate_limit_exceeded", type="tokens"), TOO_LONG),
    # The input is refused.
    (403, error("Flagged", 403, metadata={"reasons": ["x"], "flagged_input": ".."}), REFUSED),
    (403, error('x/y requires moderation on OpenRouter. Your input was flagged for "x"', 403), REFUSED),
    (400, error("Content Exists Risk", "invalid_request_error"), REFUSED),
    # The key, the rights, the model.
    (401, error("Your OpenAI account has been deactivated", type="requests"), errors.AuthenticationError),
    (200, {"base_resp": {"status_code": 1004, "status_msg": "login fail"}}, errors.AuthenticationError),
    (
        404,
        error("Your organization must be verified to use the model `o3`.", "model_not_found"),
        errors.PermissionDeniedError,
    ),
    (
        400,
        error("/chat/completions: Invalid model name passed in model=x. Call `/v1/models`", "400"),
        NO_MODEL,
    ),
    (400, error("400: {'error': '/chat/completions: Invalid model name passed in model=x'}", 400), NO_MODEL),
    (400, error("anthropic_messages: Invalid model name passed in model=x. Call `/v1/models`"), NO_MODEL),
    (400, error("agenerate_content_stream: Invalid model name passed in model=x. Call"), NO_MODEL),
    # What a server cannot do.
    (500, error("image input is not supported - hint: you may need to provide the mmproj", 500), WRONG),
    (500, error("audio input is not supported by this server", 500), WRONG),
    (500, error("tools param requires --jinja flag", 500), WRONG),
    (501, error("This server does not support embeddings", 501), errors.InternalServerError),
    (407, "", errors.APIConnectionError),
    (498, error("flex tier capacity exceeded", "capacity_exceeded"), errors.OverloadedError),
    (429, error("Weekly/Monthly Limit Exhausted. Your limit will reset at 2026-12-09", "1310"), EMPTY),
    # Words of gateways and smaller hosts.
    (401, error("Insufficient balance. Manage your billing here: https://x", type="CreditsError"), EMPTY),
    (403, error("user quota is not enough (request id: 2)", "insufficient_user_quota"), EMPTY),
    (403, error("user quota is not enough (request id: 2)", type="v_api_error"), EMPTY),
    (403, {"error": "Your newly created team doesn't have any credits or licenses yet."}, EMPTY),
    (403, {"code": "INSUFFICIENT_BALANCE", "message": "Insufficient account balance"}, EMPTY),
    (429, error("Gemini 2.5 Pro Preview doesn't have a free quota tier. Please use", 429), EMPTY),
    (429, error("Rate limit exceeded: free-models-per-day-high-balance.", "429"), EMPTY),
    (
        429,
        error("Provider returned error", 429, metadata={"limit_source": "openrouter_free_tier_daily"}),
        EMPTY,
    ),
    (503, error("No available channel for model m under group x (distributor)", "model_not_found"), NO_MODEL),
    (503, error("No available channel for model m under group x (distributor)"), NO_MODEL),
    (
        503,
        error("当前分组 default 下对于模型 gpt-4.1 无可用渠道 (request id: 2)", type="one_api_error"),
        NO_MODEL,
    ),
    (503, error("No available channel", type="x"), errors.OverloadedError),
    (200, {"error": "Unexpected endpoint or method. (POST /chat/completions)"}, NO_MODEL),
    (200, error("failed to encode response: json: unsupported value: NaN", type="api_error"), WRONG),
    (500, error("failed to encode response: json: unsupported value: NaN", type="api_error"), WRONG),
    (200, error("Input validation error", http_status_code=422), WRONG),
    (
        200,
        error("Input validation error: `inputs` must have less than 9 tokens", http_status_code=422),
        TOO_LONG,
    ),
    (400, error("The total length of all messages is too long.", 400, type="bad_request"), TOO_LONG),
    (400, error("max_tokens must be at least 1, got -186.", 400), TOO_LONG),
    (
        413,
        error("Request body too large for gpt-4.1 model. Max size: 8000.", "tokens_limit_reached"),
        TOO_LONG,
    ),
    (429, error(f"{PER_MINUTE}: Limit 7000, Used 0, Requested ~12903. Please try again in 50s"), TOO_LONG),
    (429, error(f"{PER_MINUTE}: Limit 30000, Requested 36278. The input", "rate_limit_exceeded"), TOO_LONG),
    (429, error(f"{PER_MINUTE}: Limit 30000, Used 29000, Requested 1877."), TOO_FAST),
    (429, error(f"{PER_MINUTE}: Limit 30000, Used 0, Requested 30000."), TOO_FAST),
    (200, {"code": 500, "msg": "404 NOT_FOUND", "success": False}, errors.InternalServerError),
]


@pytest.mark.parametrize(("status", "body", "kind"), ANSWERS)
def test_what_providers_say_has_its_class(status: int, body: Any, kind: type[LLMError]) -> None:
    codes, message = error_fields(body)
    made = from_answer(status, codes=codes, message=message)
    assert type(made) is kind
    assert made.retryable == (kind.retryable and status not in (407, 501))
    assert status != 200 or reports_error(body, "choices")


QUOTES = [
    "Invalid value for 'content': '{}'",
    'Your message was refused: "{}"',
    "messages.0.content: prompt: {}",
    'Invalid JSON in a tool: {{"error": {{"code": "insufficient_quota", "message": "{}"}}}}',
    "Could not parse the text “{}”",
    "Unsupported content: {}",
    "See 'failed_generation' for more details. failed_generation: {}",
]
SAID = [
    "your credit balance is too low to access the Anthropic API",
    "this model's maximum context length is 4096 tokens",
    "insufficient balance or no resource package",
    "incorrect API key provided",
    "prompt is too long: 9 tokens > 8 maximum",
    "your organization must be verified",
]


@pytest.mark.parametrize("said", SAID)
@pytest.mark.parametrize("quote", QUOTES)
def test_words_of_the_user_turn_no_failure_into_another(quote: str, said: str) -> None:
    for status in (400, 422, 429, 500):
        rule = find_rule(status, ("invalid_request_error",) if status < 429 else (), quote.format(said))
        assert rule.kind is find_rule(status, (), "").kind


@given(st.sampled_from([400, 403, 422, 429, 500, 200]), st.text(max_size=60), st.text(max_size=30))
def test_any_message_has_a_row(status: int, message: str, code: str) -> None:
    assert issubclass(find_rule(status, (code,), message).kind, LLMError)
    assert len(words_in(message)) <= len(message)


def test_rows_have_sources_and_patterns_that_compile() -> None:
    for rule in RULES:
        assert rule.source
        assert rule.kind in CONSEQUENCES or rule.kind is errors.BadRequestError
        assert not (rule.codes and rule.words)
        assert re.compile(rule.codes or rule.words) is not None
        assert rule.statuses


@pytest.mark.parametrize(
    ("status", "stops", "outage"),
    [(500, "", True), (501, "before an answer", False), (505, "before an answer", False), (529, "", True),
     (407, "before an answer", False), (401, "yes", False), (402, "yes", False), (403, "", False)],
)  # fmt: skip
def test_what_follows_from_a_status(status: int, stops: str, outage: bool) -> None:
    made = from_answer(status)
    assert consequence_of(made).stops == stops
    assert is_outage(made) == outage
