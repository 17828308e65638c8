"""Compiler from PTX to Python: control flow, liveness, lowering, passes and code generation."""
