"""The text of reports: titles, names of elements, columns."""
