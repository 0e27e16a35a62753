"""The wire formats that the simulator speaks, one module each.

Each module implements the protocol in `wire_format` with pure functions between parsed JSON and bytes.
`content` measures the text of a request. `_server/routing.py` lists which module serves which path.
"""
