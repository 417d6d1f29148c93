"""HTML pages: the report on runs and models, and the playground in which a model runs."""
