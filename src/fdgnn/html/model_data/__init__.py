"""A portrait of a model and its data: all facts that a page or a plot shows.

A portrait is made once, where the model and the graphs are. `fdgnn.html.model_data.records` has its
fields, and ``portrait.json`` is its JSON.
"""
