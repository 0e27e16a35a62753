"""The soak: worker processes under faults, kills, an outage, a full disk and clock steps, and its checks.

From the bottom up: `faults` lists the kinds of fault, `proxy` is the faulty network between the workers and
the simulator, `worker` is one process that runs batches, `clock` steps the workers' wall clock, `run` starts
and disturbs everything, and `checks` compares what workers, proxy, ledger file and simulator saw.
"""
