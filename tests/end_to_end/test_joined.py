"""Equal calls under way at the same time make one request. The programs by seed have those of processes."""

import asyncio

from llm_provider import BadRequestError, Client, Response
from llm_provider.simulator import Fault, Simulator

MODEL = "gpt-6.1-sol"


def test_a_failure_is_everybodys_and_each_has_an_error_of_its_own(
    client: Client, simulator: Simulator
) -> None:
    simulator.configure(latency=0.2)
    simulator.inject(Fault(status=400, delay=0.2), times=1)

    async def main() -> list[Response | BaseException]:
        return await asyncio.gather(*(client.acall(MODEL, "Hi") for _ in range(5)), return_exceptions=True)

    errors = asyncio.run(main())
    assert [type(error) for error in errors] == [BadRequestError] * 5
    assert len({id(error) for error in errors}) == 5
    assert simulator.ledger().requests == 1
