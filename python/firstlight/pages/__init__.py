"""HTML reports, and tables as lines of text."""
