"""How a simulated provider behaves, apart from its wire format.

`answers` decides what a model says, `rate_limits` how many requests pass, `faults` what goes wrong on order,
`shapes` the unusual forms of answers.
"""
