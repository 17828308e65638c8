"""Calls of a program's host, whatever it is written in: held to the device, findings by line."""
