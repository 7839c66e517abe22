//! The engine as a kernel in virtual time loads it: a C interface, nothing else.
