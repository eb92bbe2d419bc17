"""Other layouts of the one canonical checkpoint: the same codes and scales, repacked and never rounded again."""
