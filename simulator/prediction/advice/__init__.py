"""What would make a launch faster, a row for each defect."""
