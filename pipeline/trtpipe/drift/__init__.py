"""The drift check: how far a release is from the unquantized model, and whether a policy allows it."""
