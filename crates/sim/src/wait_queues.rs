//! Wait queues: senders that found their host's interface full block in a FIFO per host until it has room. They are
//! connections, sources of datagrams, and the stack of an external host.
//!
//! When there is room, the first sender of a queue sends one packet, and goes to the end of the queue if it has more.
//! While a sender waits, the interface is full: the room that a departing packet makes goes to the queue's senders
//! before any other event of that moment.

use firstlight_net::HostId;
use std::collections::VecDeque;

/// A sender that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waiter {
    /// The connection of this endpoint, which may be gone when its turn comes.
    Endpoint(usize),
    /// The probe of this number.
    Probe(usize),
    /// The stack of an external host.
    ExternalHost,
}

/// The queues of all hosts.
#[derive(Debug, Default)]
pub(crate) struct WaitQueues(Vec<VecDeque<Waiter>>);

impl WaitQueues {
    /// A sender goes to the end of a host's queue.
    pub(crate) fn push(&mut self, host: HostId, waiter: Waiter) {
        if self.0.len() <= host.index() {
            self.0.resize(host.index() + 1, VecDeque::new());
        }
        self.0[host.index()].push_back(waiter);
    }

    /// Whether no sender waits.
    pub(crate) fn is_empty(&self, host: HostId) -> bool {
        self.0.get(host.index()).is_none_or(VecDeque::is_empty)
    }

    /// Takes the first sender of a host's queue.
    pub(crate) fn pop(&mut self, host: HostId) -> Option<Waiter> {
        self.0.get_mut(host.index())?.pop_front()
    }
}
