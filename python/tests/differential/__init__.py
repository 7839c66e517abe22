"""Invents experiments, runs each on both kinds of hosts, and compares their captures packet for packet."""
