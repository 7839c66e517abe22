//! A second flow at the sending host: single packets that wait for the link beside a flow which fills it.
//!
//! DX, section 2: "we keep a separate queue for each flow to prevent the latency increase from other flows' queue
//! build-ups." The flows of separate queues take turns, packet by packet.

use firstlight_spec::HostQueue;
use firstlight_units::{Span, Time};

/// From one packet of the second flow to the next.
const INTERVAL: Span = Span::from_us(100);

/// The second flow, whose packets have the size of the first one's.
pub(super) struct SecondFlow {
    queue: HostQueue,
    /// When its next packet is queued.
    next: Time,
    /// How long its packets have waited, in nanoseconds.
    waits: Vec<i64>,
}

impl SecondFlow {
    pub(super) fn new(queue: HostQueue) -> Self {
        SecondFlow { queue, next: Time::ZERO + INTERVAL, waits: Vec::new() }
    }

    /// Sends the packets that leave before one of the first flow that is queued at `queued`. The link is free from
    /// `free` on, and a packet takes `packet`. Returns when the link is free after them.
    pub(super) fn send_before(&mut self, queued: Time, mut free: Time, packet: Span) -> Time {
        loop {
            let overtaken = match self.queue {
                HostQueue::Shared => queued,
                HostQueue::PerFlow => queued.max(free),
            };
            if self.next > overtaken {
                return free;
            }
            let starts = self.next.max(free);
            self.waits.push((starts - self.next).as_ps() as i64 / 1_000);
            free = starts + packet;
            self.next += INTERVAL;
        }
    }

    pub(super) fn take_waits(&mut self) -> Vec<i64> {
        std::mem::take(&mut self.waits)
    }
}
