"""Self-contained HTML pages about results: the drift report, the calibration quality report and the run overview."""
