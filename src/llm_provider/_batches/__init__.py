"""Provider batch APIs: a delivery at half price, whose jobs outlive the process.

    inputs → rows → journal (intent on disk) → submission → polling → results → cache, row by row

From the bottom: `journal` keeps on disk which rows were submitted where. `rows` turns calls into rows and
back. `remote` makes requests about batches and tries them again. `submit` matches, divides and submits, in
the budgets of `spending`. `collect` waits for one batch and stores its answers, and `missing_rows` judges
results that lack some. `job` is one call of the user, `delivery` runs jobs, and `progress` shows one. `work`
carries the inputs of a batch, `handle` shows jobs to users as `Batch`, and `choice` decides on the delivery.
"""
