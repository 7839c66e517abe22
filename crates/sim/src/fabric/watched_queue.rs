//! Watched queues: how long packets wait at a port or in a VOQ, how busy the port's link is, and how long the queue is
//! over time.

use crate::report::{QueueReport, QueueSample};
use firstlight_net::{Framing, Packet, Serializer, SwitchPort};
use firstlight_units::{Bytes, Rate, Span, Time};
use hdrhistogram::Histogram;

/// One watched port or VOQ.
#[derive(Clone, Debug)]
pub(super) struct WatchedQueue {
    name: String,
    pub(super) port: usize,
    /// The link's rate; `None` for a VOQ, which has no link of its own.
    rate: Option<Rate>,
    framing: Framing,
    since: Time,
    packets: u64,
    bytes: u64,
    waits: Histogram<u64>,
    samples: Vec<QueueSample>,
}

impl WatchedQueue {
    pub(super) fn new(name: String, port: usize, link: Option<&Serializer>) -> Self {
        let waits = Histogram::new(3).expect("three digits are a legal precision");
        let (rate, framing) = (link.map(Serializer::rate), link.map_or(Framing::default(), Serializer::framing));
        WatchedQueue { name, port, rate, framing, since: Time::ZERO, packets: 0, bytes: 0, waits, samples: vec![] }
    }

    /// A packet waits, or has waited, so long in the fabric's own time.
    pub(super) fn on_packet(&mut self, packet: &Packet, wait: Span) {
        self.packets += 1;
        self.bytes += u64::from(packet.size());
        self.waits.record(wait.as_ps() / 1000).expect("the histogram grows as needed");
    }

    /// How long the bytes last that a port has not sent yet, in the fabric's own time.
    pub(super) fn ahead(&self, port: &impl SwitchPort, now: Time) -> Span {
        self.rate.expect("a port has a link").tx_time(port.backlog(now))
    }

    pub(super) fn sample(&mut self, packets: u32, bytes: Bytes, now: Time, scale: u32) {
        let at = Span::from_ps(now.as_ps() / u64::from(scale));
        self.samples.push(QueueSample { at, packets, bytes });
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
            bytes: Bytes::new(self.bytes),
            waits: self.waits.clone(),
            samples: self.samples.clone(),
        }
    }
}
