//! Counts of the packets that Linux hosts sent: delivered, or why not.

/// Ethernet frames of Linux hosts, each counted in `sent` and in one of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frames {
    /// All frames that hosts handed in.
    pub sent: u64,
    /// Frames delivered to a host.
    pub delivered: u64,
    /// Frames lost in the fabric.
    pub dropped: u64,
    /// Frames inside the fabric when the run ended.
    pub held: u64,
    /// Frames sent before the run began.
    pub early: u64,
    /// Frames sent after the run had ended.
    pub late: u64,
    /// Frames that carry neither IPv4 nor IPv6.
    pub not_ip: u64,
    /// Frames with broken headers.
    pub malformed: u64,
    /// Frames for an address that no host of the kernel has, or that the sending link does not lead to.
    pub elsewhere: u64,
}
