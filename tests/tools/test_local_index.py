"""The pages of the index on this machine. `make release-rehearsal` serves them."""

from tools.local_index import mark_yanked

PAGE = '<h1>a</h1><a href="/a-1.whl#sha256=0">a-1.whl</a><br>\n<a href="/a-10.whl#sha256=1">a-10.whl</a>'


def test_only_yanked_files_are_marked_with_their_reasons() -> None:
    assert mark_yanked(PAGE, {}) == PAGE
    marked = mark_yanked(PAGE, {"a-1.whl": 'it "broke" <all>'})
    assert marked.count("data-yanked") == 1
    assert '<a data-yanked="it &quot;broke&quot; &lt;all&gt;" href="/a-1.whl#sha256=0">a-1.whl</a>' in marked
