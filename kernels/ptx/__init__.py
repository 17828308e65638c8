"""PTX text and what it says: one parser, used by the simulator, the device and the reports."""
