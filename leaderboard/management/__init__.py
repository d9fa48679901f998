"""The command line of the site."""
