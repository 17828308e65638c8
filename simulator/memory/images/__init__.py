"""Textures and surfaces: fetches, filtering, loads and stores."""
