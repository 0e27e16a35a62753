"""A small price list."""

from pathlib import Path

import pytest

HEADER = (
    "provider,model,variant,min_input_tokens,input,cache_read,cache_write,cache_write_1h,output,"
    "effective_from,source,as_of\n"
)
ROWS = """\
openai,gpt-6.1-sol,standard,0,2,0.1,2.5,,10,,made up,2026-11-20
openai,gpt-6.1-sol,batch,0,1,0.05,1.25,,5,,made up,2026-11-20
openai,text-embedding-3-small,standard,0,0.02,,,,,,made up,2026-11-20
openai,tiered,standard,0,1,,,,1,,made up,2026-11-20
openai,tiered,standard,100,3,,,,3,,made up,2026-11-20
openai,dated,standard,0,1,,,,1,2026-01-01,made up,2026-11-20
openai,dated,standard,0,5,,,,5,2026-06-01,made up,2026-11-20
openai,dated,standard,0,9,,,,9,2999-01-01,made up,2026-11-20
"""


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    path = tmp_path / "prices.csv"
    path.write_text(HEADER + ROWS, encoding="utf-8")
    return path
