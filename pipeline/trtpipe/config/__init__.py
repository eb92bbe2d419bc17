"""The config file: its schema, its strict YAML reader, and errors with a position."""
