"""The way of one call.

`engine` has it from top to bottom: prepare, look up, run. `several_parts` is the part of it for calls of
several samples or texts, `repair` the one for answers that do not match. `fallback` asks several models in
turn. `single_flight` lets equal calls share a request, and `machine_lease` those of several machines.
`drop_unsupported` leaves out parameters, `loop_state` has the objects that belong to one event loop, and
`stream` the streams that the user iterates.
"""
