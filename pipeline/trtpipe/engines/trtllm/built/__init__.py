"""What was built: an engine folder read, compared with what was asked for, and locked to where it may run."""
