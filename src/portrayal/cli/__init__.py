"""Command-line interface: one module per command. Only this package prints."""
