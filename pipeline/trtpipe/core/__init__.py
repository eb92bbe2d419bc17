"""Artifacts, their store, the stage runner and child processes: what every area stands on."""
