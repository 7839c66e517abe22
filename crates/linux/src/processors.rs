//! Counters of the processors of Linux hosts.

use firstlight_units::Span;

/// The work of one host's processors since the kernel began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Processors {
    /// Time of all work, of all processors together.
    pub busy: Span,
    /// Time of this that interrupts have caused: the interrupts, the packets that the card has received, and what the
    /// stack sends upon these.
    pub card: Span,
    /// Interrupts of the network card.
    pub interrupts: u64,
}
