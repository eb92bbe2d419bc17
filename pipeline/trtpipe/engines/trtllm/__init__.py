"""What TensorRT-LLM makes of a model and a target, told from config.json alone: no weights, no GPU, no TensorRT."""
