"""What single hosts do differently from their wire format. No extra; tests/_features/quirks.

A format is what its maker documents. A row of `ROUTES` names a module in its column `quirks`. The functions
in the module's table `FUNCTIONS` stand in the place of the adapter's functions with the same names: `encode`
for a request, `decode` for a reply, `assembler` for the chunks of a stream. `registry` lays them over the
adapter when the first call needs it, so a call through a standard route loads none of them.

`any_server` is for every server that speaks OpenAI's formats, also where nothing but its address is known.
It has what several servers do, or pass on as gateways. `groq` and `routers` are for the hosts that they name.
"""
