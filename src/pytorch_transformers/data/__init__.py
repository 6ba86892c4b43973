"""From files and texts to batches, and from batches to results in the order of the texts."""
