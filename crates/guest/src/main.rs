//! The first program of a kernel in virtual time: it sets the hosts up, carries the traffic and runs the programs.

fn main() {}
