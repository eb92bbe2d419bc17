"""Teacher-forced scoring outside this package's own environment: scripts, what they share, and the calls of them."""
