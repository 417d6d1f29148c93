"""Pictures of graphs: where vertices lie, and how they are drawn."""
