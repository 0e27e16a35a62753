"""The price list by which the ledger bills."""

from decimal import Decimal
from pathlib import Path

from llm_provider.simulator._records.prices import PriceList
from llm_provider.simulator.formats.wire_format import Usage

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


def test_price_list(tmp_path: Path) -> None:
    prices = tmp_path / "prices.csv"
    prices.write_text(HEADER + ROWS, encoding="utf-8")
    table = PriceList(prices, today="2026-11-20")

    def cost(model: str, **usage: int) -> Decimal | None:
        found = table.cost("openai", model, Usage(**usage))
        return None if found is None else found * 1_000_000

    assert cost("gpt-6.1-sol", input_tokens=10, output_tokens=1) == 30
    assert cost("tiered", input_tokens=99, output_tokens=1) == 100
    assert cost("tiered", input_tokens=100, output_tokens=1) == 303
    assert cost("tiered", input_tokens=100, cache_read_input_tokens=1) is None
    assert cost("text-embedding-3-small", input_tokens=100) == 2
    assert cost("dated", input_tokens=1) == 5
    assert cost("unknown", input_tokens=1) is None
