"""`python -m llm_provider` is `llm-provider`."""

import sys

from ._features.cli.main import main

sys.exit(main())
