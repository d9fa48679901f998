"""Imports, but defines no solve."""

import cutlass

_DSL = cutlass.Float32
