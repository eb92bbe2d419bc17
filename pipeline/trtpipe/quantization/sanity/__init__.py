"""Does a converted checkpoint still say what its model says? Tried on a few prompts, a layer in memory at a time."""
