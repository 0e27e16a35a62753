"""`python -m llm_provider` is `llm-provider`."""

import sys

from ._cli import main

sys.exit(main())
