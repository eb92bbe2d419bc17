"""Building a TensorRT-LLM engine: the exact lines, what a host has for them, and the stage that runs them."""
