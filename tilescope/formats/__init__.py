"""Report formats: SARIF, JUnit, and other files."""
