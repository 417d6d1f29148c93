"""Speed side by side with others, and readings of the paper side by side."""
