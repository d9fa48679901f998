"""Tests of what the runner knows of the DSLs."""
