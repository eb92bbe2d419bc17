"""Engines: what to start them with, how they are built and checked, and how they score text."""
