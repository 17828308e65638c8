"""Asynchronous copies, bulk copies and proxies."""
