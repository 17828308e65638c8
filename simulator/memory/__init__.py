"""Where variables stand, what arrays hold, and how an access reaches them."""
