"""Bulk copies, by address or by tensor map."""
