"""The composition root: which stages there are, in which order, and what each gets from the config."""
