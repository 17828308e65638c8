"""Races as they are collected: groups, pairs, program order."""
