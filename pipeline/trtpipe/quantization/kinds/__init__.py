"""Checkpoints whose codes another quantizer has chosen: ModelOpt, AutoAWQ, or whoever made an existing one."""
