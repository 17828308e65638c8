"""Text of reports: titles, element names, columns."""
