"""The trained part: coding of targets, ridge regression in closed form, probabilities."""
