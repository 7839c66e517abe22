//! Watched queues: how long packets wait at a port, how busy its link is, and how long its queue is over time.

use crate::report::{QueueReport, QueueSample};
use firstlight_net::{Framing, Packet, Serializer, SwitchPort};
use firstlight_units::{Rate, Span, Time};
use hdrhistogram::Histogram;

/// One watched port.
#[derive(Clone, Debug)]
pub(super) struct WatchedQueue {
    name: String,
    pub(super) port: usize,
    rate: Rate,
    framing: Framing,
    since: Time,
    packets: u64,
    bytes: u64,
    waits: Histogram<u64>,
    samples: Vec<QueueSample>,
}

impl WatchedQueue {
    pub(super) fn new(name: String, port: usize, link: &Serializer) -> Self {
        let waits = Histogram::new(3).expect("three digits are a legal precision");
        let (rate, framing) = (link.rate(), link.framing());
        WatchedQueue { name, port, rate, framing, since: Time::ZERO, packets: 0, bytes: 0, waits, samples: vec![] }
    }

    /// A packet was queued; sending all that was unsent before it takes `ahead`, in the fabric's own time.
    pub(super) fn on_packet(&mut self, packet: &Packet, ahead: Span) {
        self.packets += 1;
        self.bytes += u64::from(packet.size());
        self.waits.record(ahead.as_ps() / 1000).expect("the histogram grows as needed");
    }

    /// How long the bytes last that a port has not sent yet, in the fabric's own time.
    pub(super) fn ahead(&self, port: &impl SwitchPort, now: Time) -> Span {
        self.rate.tx_time(port.backlog(now))
    }

    pub(super) fn sample(&mut self, port: &impl SwitchPort, now: Time, scale: u32) {
        let at = Span::from_ps(now.as_ps() / u64::from(scale));
        self.samples.push(QueueSample { at, packets: port.waiting_at(now), bytes: port.backlog(now) });
    }

    pub(super) fn reset(&mut self, now: Time) {
        (self.since, self.packets, self.bytes) = (now, 0, 0);
        self.waits.reset();
        self.samples.clear();
    }

    pub(super) fn report(&self, now: Time, scale: u32) -> QueueReport {
        QueueReport {
            name: self.name.clone(),
            rate: self.rate,
            framing: self.framing,
            elapsed: (now - self.since) / u64::from(scale),
            packets: self.packets,
            bytes: firstlight_units::Bytes::new(self.bytes),
            waits: self.waits.clone(),
            samples: self.samples.clone(),
        }
    }
}
