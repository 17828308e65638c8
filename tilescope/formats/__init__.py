"""SARIF, JUnit and report files."""
