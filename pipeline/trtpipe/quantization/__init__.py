"""The AWQ core: activation-aware 4-bit weights from statistics, one decoder layer at a time."""
