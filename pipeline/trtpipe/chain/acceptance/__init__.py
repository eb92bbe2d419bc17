"""``trtpipe accept``: everything that a machine with TensorRT-LLM can measure of a target, in one document."""
