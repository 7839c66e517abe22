//! Who waits for room in a host's interface: connections, sources of datagrams, and the stack of a host outside.
//!
//! A line for each host, first come, first served. Whoever is at its head has a turn of one packet when there is room, and goes
//! to the end of the line if it has more. While somebody waits the interface is full: what leaves it makes room for those in
//! the line before anything else happens at that moment.

use firstlight_net::HostId;
use std::collections::VecDeque;

/// Who waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waiter {
    /// The connection at this place, which may be gone when its turn comes.
    End(usize),
    /// The probe of this number.
    Probe(usize),
    /// The stack of a host outside.
    Outside,
}

/// The lines of all hosts.
#[derive(Debug, Default)]
pub(crate) struct Lines(Vec<VecDeque<Waiter>>);

impl Lines {
    /// Somebody goes to the end of a host's line.
    pub(crate) fn join(&mut self, host: HostId, waiter: Waiter) {
        if self.0.len() <= host.index() {
            self.0.resize(host.index() + 1, VecDeque::new());
        }
        self.0[host.index()].push_back(waiter);
    }

    /// Whether anybody waits.
    pub(crate) fn is_empty(&self, host: HostId) -> bool {
        self.0.get(host.index()).is_none_or(VecDeque::is_empty)
    }

    /// Whoever is at the head of a host's line leaves it.
    pub(crate) fn next(&mut self, host: HostId) -> Option<Waiter> {
        self.0.get_mut(host.index())?.pop_front()
    }
}
