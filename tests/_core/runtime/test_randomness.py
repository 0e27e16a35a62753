"""Random numbers that no seed of the user's program decides, and names that occur once."""

import random

from llm_provider._core.runtime import randomness
from support import RunScript


def test_the_seed_of_a_program_is_not_that_of_the_library() -> None:
    random.seed(1)
    before = random.getstate()
    draws = [randomness.generator.random() for _ in range(3)]
    assert random.getstate() == before
    random.seed(1)
    assert draws != [randomness.generator.random() for _ in range(3)]


def test_the_children_of_a_process_draw_other_numbers(run_script: RunScript) -> None:
    draws = run_script(
        """
        import os
        from llm_provider._core.runtime.randomness import generator
        for _ in range(2):
            child = os.fork()
            if not child:
                break
            os.waitpid(child, 0)
        os.write(1, f"{generator.random()}\\n".encode())
        """
    )
    assert len(set(draws.stdout.split())) == 3
