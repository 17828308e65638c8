"""What tests of several folders use: places of files, programs as text, launches."""
