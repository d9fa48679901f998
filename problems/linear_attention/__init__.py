"""Linear attention: gated delta rules."""
