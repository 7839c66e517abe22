//! What a program can ask of its connection, as Linux's `tcp_info` tells it.

/// A connection's state of affairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {}
