"""Asking a server as many clients do, and what came of it."""
