"""Small bugs are drawn by seed, are bugs of the code that runs, and are what a person would write."""

import ast
from collections import Counter

import pytest

from tools.small_bugs import AREAS, ROOT, draw, find_mutants, list_modules

KINDS = {
    "condition turned",
    "dropped await or renewal",
    "forgotten record",
    "missing fsync",
    "off by one",
    "removed release",
    "swapped argument",
    "swapped comparison",
    "wrong default",
    "wrong index",
}


@pytest.mark.parametrize(
    ("code", "bugs"),
    [
        ("await renew(x)", ["dropped await or renewal: pass"]),
        ("await send(x)", ["dropped await or renewal: pass"]),
        ("await lease.release()", ["removed release: pass"]),
        ("os.fsync(file)", ["missing fsync: pass"]),
        ("rows.append(row)", ["forgotten record: pass"]),
        ("self.spent += cost", ["forgotten record: pass"]),
        ("self.rows[name] = row", ["forgotten record: pass"]),
        ("x = self.rows[0]", ["wrong index: x = self.rows[1]"]),
        ("x = self.rows[-1]", ["wrong index: x = self.rows[-2]"]),
        ("x = size + 1", ["off by one: x = size + 2"]),
        ("x = rows[1:]", ["off by one: x = rows[2:]"]),
        ("x = rows.get(name, 0)", ["wrong default: x = rows.get(name, 1)"]),
        ("x = count or 0", ["wrong default: x = count or 1"]),
        ("x = store(row, sync=True)", ["wrong default: x = store(row, sync=False)"]),
        ("x = send(call, key)", ["swapped argument: x = send(key, call)"]),
        ("x = Row(key=call.key, text=text)", ["swapped argument: x = Row(key=text, text=call.key)"]),
        ("x = min(size, left)", ["swapped comparison: x = max(size, left)"]),
        ("x = size < most", ["off by one: x = size <= most", "swapped comparison: x = size > most"]),
        ("x = now >= self.until", ["swapped comparison: x = now <= self.until"]),
        (
            "x = a and b(c) and d",
            ["condition turned: x = (b(c) and d)", "condition turned: x = (a and b(c))"],
        ),
        ("x = [a for a in b if a]", ["condition turned: x = [a for a in b if not (a)]"]),
        ("try: f = 1\nfinally:\n    self.stop()", ["removed release: pass"]),
        # Not what runs, or what only tells people something.
        ("x: Literal[1] = y", []),
        ('"""One."""', []),
        ("_log.debug('%s', rows[0])", []),
        ("raise ValueError(f'{rows[0]}')", []),
        ("assert a < b", []),
        ("x = f'{rows[0]}'", []),
        ("if TYPE_CHECKING:\n    x = rows[0]", []),
        ("if a:  # pragma: no cover\n    x = rows[0]", []),
        ("def __repr__(self):\n    return self.rows[0]", []),
        ("x = zip(a, b, strict=True)", []),
        ("x = Limits(most, most)", []),
        ("x = size + 1000", []),
        ("MOST = 10_000\nx = size < MOST", ["swapped comparison: x = size > MOST"]),
        ("x = (count or 0) >= 500", ["swapped comparison: x = (count or 0) <= 500"]),
        (
            "x = (count or 0) > LONGEST_RETRY_AFTER",
            ["swapped comparison: x = (count or 0) < LONGEST_RETRY_AFTER"],
        ),
        (
            "x = (count or 0) > 2",
            [
                "off by one: x = (count or 0) >= 2",
                "swapped comparison: x = (count or 0) < 2",
                "wrong default: x = (count or 1) > 2",
                "off by one: x = (count or 0) > 3",
            ],
        ),
        ("x = count or 200", []),
        ("x = make(path, mode or 0o600)", ["wrong default: x = make(path, mode or 385)"]),
        ("MOST = 2**26\nx = read(MOST + 1)", []),
    ],
)
def test_a_line_has_the_bugs_that_a_person_would_write(code: str, bugs: list[str]) -> None:
    source = code.encode()
    assert [f"{each.kind}: {each.show(source).partition(' → ')[2]}" for each in find_mutants(source)] == bugs


def test_every_bug_of_every_area_is_another_program() -> None:
    kinds: Counter[str] = Counter()
    for path in [path for area in AREAS for path in list_modules(area)][::7]:
        source = (ROOT / path).read_bytes()
        same = ast.dump(ast.parse(source))
        for mutant in find_mutants(source, path)[::25]:
            kinds[mutant.kind] += 1
            assert ast.dump(ast.parse(mutant.apply(source))) != same, mutant
    assert len(kinds) > len(KINDS) // 2


def test_a_seed_says_everything_and_draws_every_kind_and_area() -> None:
    bugs = draw(7, 50)
    assert bugs == draw(7, 50) != draw(8, 50)
    assert bugs[:20] == draw(7, 20)
    assert len(set(bugs)) == 50
    assert Counter(bug.kind for bug in bugs) == dict.fromkeys(KINDS, 5)
    for area in AREAS:
        assert {bug.path for bug in bugs} & set(list_modules(area)), area
