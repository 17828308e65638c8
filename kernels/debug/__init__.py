"""Debug information of PTX text (DWARF)."""
