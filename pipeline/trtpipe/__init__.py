"""trtpipe: from a Hugging Face model and a log of real prompts to a checked 4-bit engine behind Triton."""

__version__ = "0.1.0"
