"""Every reply that an SDK's types allow is decoded, and nothing in it is lost.

The replies are made from the types of the installed SDKs. A new release with another kind of content, or
another word for the end of an answer, adds a cell here.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.checks import CELLS, Content, contents, each_of, examples, wrong_in_answer
from conformance.formats import BY_NAME, FORMATS, Format


@each_of(CELLS)
def test_every_reply_is_decoded(form: str, cell: str, replies: list[Any]) -> None:
    wrong = {
        problem
        for reply, content, finish in replies
        for problem in wrong_in_answer(BY_NAME[form], reply, content, finish)
    }
    assert not wrong


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
@examples(50)
@given(data=st.data())
def test_every_mixture_of_content_is_decoded(form: Format, data: st.DataObject) -> None:
    content: Content = data.draw(st.lists(st.sampled_from(contents(form)), min_size=1, max_size=5))
    if any(kind.name.endswith("_output") for kind, _ in content):
        # All samples have one id, so an output would show that the provider has run the call itself.
        content = [(kind, sample) for kind, sample in content if not kind.call]
    assert not wrong_in_answer(form, form.reply(content, form.done), content, form.done)
