"""Provider batch APIs: a delivery at half price, whose jobs outlive the process.

    inputs → rows → journal (intent on disk) → submission → polling → results → cache, row by row

`journal` keeps on disk which rows were submitted where. `rows` turns calls into rows and back. `remote`
makes requests about batches and tries them again. `submit` matches, divides and submits. `collect` waits for
one batch and stores its answers, and `missing_rows` judges results that lack some. `job` is one call of the
user. `delivery` runs jobs. `work` carries the inputs of a batch, and `handle` shows jobs to users as `Batch`.
`choice` decides between the deliveries, and `progress` shows a job.

Order, from the bottom: journal, rows, remote, submit, spending, missing_rows, collect, job, delivery,
progress, work, handle, choice.
"""
