"""One attempt: a model with tools in a sandbox, under a clock, that leaves a kernel and a skill."""

from runner.attempt.conversation import OrderRefusedError, run_attempt

__all__ = ["OrderRefusedError", "run_attempt"]
