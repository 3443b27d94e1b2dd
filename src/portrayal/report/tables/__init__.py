"""Tables: measurements laid out for reading, and what each metric's table looks like."""
