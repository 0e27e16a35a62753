"""Which results of two runs answer the same input."""

import json
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence

from ..._core.json_values import json_value
from ..._core.types.results_table import AnyResult


def pair_results(
    first: Sequence[AnyResult], second: Sequence[AnyResult]
) -> Iterator[tuple[int | None, int | None]]:
    """The positions of results that belong together, in the order of the first run; None where one is alone.

    Results belong together if prompt and metadata are equal, else if they alone have their metadata, else if
    their prompts are equal, else if they have the same position in runs of the same length. Equal inputs are
    paired in their order.
    """
    left, right = (
        [_Input(result, position) for position, result in enumerate(run)] for run in (first, second)
    )
    keys: list[tuple[Callable[[_Input], Hashable], bool]] = [
        (lambda each: each.prompt and (each.prompt, each.identity), False),
        (lambda each: each.identity, True),
        (lambda each: each.prompt, False),
    ]
    if len(left) == len(right):
        keys.append((lambda each: each.position, False))
    partners: dict[int, int] = {}
    for key, only_unique in keys:
        matched = set(partners.values())
        ours = _group([each for each in left if each.position not in partners], key)
        theirs = _group([each for each in right if each.position not in matched], key)
        for value, positions in ours.items():
            if not only_unique or len(positions) == len(theirs[value]) == 1:
                partners.update(zip(positions, theirs[value], strict=False))
    yield from ((each.position, partners.get(each.position)) for each in left)
    matched = set(partners.values())
    yield from ((None, each.position) for each in right if each.position not in matched)


class _Input:
    """What is known of the input of a result."""

    def __init__(self, result: AnyResult, position: int) -> None:
        self.position = position
        self.prompt = None if result.prompt is None else _write(result.prompt)
        label = None if result.row_label is None else result.row_label.value
        known = (result.metadata, label)
        # A user's value may have no truth value.
        self.identity = None if all(each is None for each in known) else _write(known)


def _write(value: object) -> str:
    return json.dumps(json_value(value), sort_keys=True)


def _group(inputs: Sequence[_Input], key: Callable[[_Input], Hashable]) -> defaultdict[Hashable, list[int]]:
    groups: defaultdict[Hashable, list[int]] = defaultdict(list)
    for each in inputs:
        if (value := key(each)) is not None:
            groups[value].append(each.position)
    return groups
