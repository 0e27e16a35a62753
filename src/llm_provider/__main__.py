"""`python -m llm_provider` is `llm-provider`."""

import sys

from ._cli.main import main

sys.exit(main())
