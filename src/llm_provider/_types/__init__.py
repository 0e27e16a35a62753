"""The values that users receive. All but `Results` are frozen.

Order: usage, messages, response, embeddings, results_views, results.
"""
