"""The page's sections, in their order: each module makes one from the sources."""
