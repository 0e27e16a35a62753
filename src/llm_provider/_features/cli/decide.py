"""The command `decide`, which asks questions about every line of a file."""

import json
from pathlib import Path
from typing import Any

import click

from ..._core.errors import LLMError
from .map_rows import read_prompts
from .output import FAILED, OK, PROGRAM, logs_in_one_line, print_table, say, when_interrupted
from .parsing import PROMPT_RULES, Command, complete_model, parameters_of, prices_option, prompt_options

_EPILOG = f"""\
Every row of FILE is an input, as `map` reads it. Without a file, lines are read from standard input.
The questions are q1, q2 and so on: first the predicates, then the choices, then the scores.

  {PROGRAM} decide gpt-6-luna mails.txt --predicate "The customer is angry."
  {PROGRAM} decide gemini-decision-1 mails.jsonl --choice "What is it about?=bills,bugs,other" --json

An answer that is stored is not asked again.
"""


def _parse_options(text: str) -> tuple[str, list[str]]:
    """The question and its options.

    >>> _parse_options("How kind?=rude, kind")
    ('How kind?', ['rude', 'kind'])
    """
    question, equals, options = text.rpartition("=")
    if not equals:
        raise click.BadParameter("expected QUESTION=OPTION,OPTION, such as 'How kind?=rude,kind'")
    return question.strip(), [option.strip() for option in options.split(",")]


@click.command(cls=Command, epilog=_EPILOG, rules={"--allow-unknown": "needs --budget", **PROMPT_RULES})
@click.argument("model", metavar="MODEL", shell_complete=complete_model)
@click.argument("file", metavar="[FILE]", required=False, type=click.Path(path_type=Path))
@prompt_options
@click.option(
    "--predicate", metavar="TEXT", multiple=True, help="a statement that is true or not; repeatable"
)
@click.option(
    "--choice", metavar="TEXT=A,B", multiple=True, type=_parse_options, help="a choice of options; repeatable"
)
@click.option(
    "--score", metavar="TEXT=A,B", multiple=True, type=_parse_options, help="levels, lowest first; repeatable"
)
@click.option("--method", metavar="M", help="native, logprobs or sampled (native)")
@click.option("--draws", metavar="N", type=int, help="answers to each question, with --method sampled (10)")
@click.option("--budget", metavar="USD", type=float, help="the most that all answers may cost")
@click.option("--allow-unknown", is_flag=True, help="let the budget pass requests that have no known price")
@click.option("--base-url", metavar="URL", help="the server to ask instead of the provider's own")
@prices_option
@click.option("--json", "as_json", is_flag=True, help="print a JSON object for each question of each input")
def run_decide(
    model: str,
    file: Path | None,
    *,
    template: str | None,
    column: str | None,
    predicate: Any,
    choice: Any,
    score: Any,
    as_json: bool,
    **options: Any,
) -> int:
    """Ask questions about every row of a file, which probabilities answer."""
    import llm_provider as library

    questions = [library.predicate(text) for text in predicate]
    questions += [library.choice(*each) for each in choice] + [library.score_levels(*each) for each in score]
    parameters: Any = parameters_of(options)
    kept = "what was answered is kept", "the same command asks the rest"
    with logs_in_one_line(), when_interrupted(*kept):
        results = library.decide_many(
            model, list(read_prompts(file, template, column)), questions, **parameters
        )
    rows = []
    for number, result in enumerate(results, start=1):
        if isinstance(result, LLMError):
            say("error", f"input {number}: {result}")
        else:
            rows += [(number, result.model, decision) for decision in result]
    if as_json:
        for number, answered, decision in rows:
            fields = {"input": number, "model": answered, **decision.to_dict()}
            print(json.dumps(fields, ensure_ascii=False))
    else:
        cells = [[str(number), each.name, each.describe()] for number, _, each in rows]
        print_table(("input", "question", "answer"), cells, left=("question", "answer"))
    return FAILED if any(isinstance(result, LLMError) for result in results) else OK
