"""The wire formats that the simulator speaks, one module each."""
