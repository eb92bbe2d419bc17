"""From a log of prompts to a calibration set and a held-out set."""
