"""A TensorRT-LLM engine started in Triton: what must be there first, the line that starts it, and a release's files."""
