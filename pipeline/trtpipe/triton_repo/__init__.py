"""Triton: the model repository, the models in it, a server to run it and a client to ask it."""
