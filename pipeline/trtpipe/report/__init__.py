"""Self-contained HTML pages about results: the drift report and the run overview."""
