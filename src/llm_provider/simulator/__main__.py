"""Run the simulator from a shell."""

import sys

from ._command import main

sys.exit(main())
