"""An experiment on a page that runs it again at each change of its settings."""
