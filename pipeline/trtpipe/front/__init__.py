"""The OpenAI-compatible front before Triton."""
