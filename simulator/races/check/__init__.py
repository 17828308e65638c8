"""Observers that hold each access against order and shadow memory."""
