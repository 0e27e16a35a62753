"""Run the simulator from a shell."""

import sys

from ._server.command import main

sys.exit(main())
