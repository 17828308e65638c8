"""Usage of the commands: options and help, without what runs them (``tilescope.commands``)."""
