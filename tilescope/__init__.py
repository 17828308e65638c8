"""What people touch: the command line and its reports."""
