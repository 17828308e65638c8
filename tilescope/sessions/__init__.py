"""Sessions and pipelines of several launches."""
