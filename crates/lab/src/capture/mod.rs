//! Packet capture: pcapng (draft-ietf-opsawg-pcapng) with nanosecond timestamps, as Wireshark opens it.
//!
//! One interface per host, named as the experiment names it; a packet is recorded where it passes that host's edge. By
//! default only the sender's host of each flow records, as tcpdump there would: otherwise a reader sees every packet
//! twice. Timestamps are the experiment's own time (divided by `time_scale`) since the start of the run.

mod address;
mod headers;
mod writer;

pub use address::address;
pub use writer::CaptureWriter;

use crate::spec::{CaptureSide, Spec};
use firstlight_net::{HostId, Packet};
use firstlight_sim::{CaptureSink, Direction, FlowReport};
use firstlight_units::Time;

/// Chooses the packets to record.
pub(crate) struct Capture {
    writer: CaptureWriter,
    side: CaptureSide,
    /// Host and port of each flow's sender, sorted.
    senders: Vec<(HostId, u16)>,
    time_scale: u64,
}

impl Capture {
    pub(crate) fn new(writer: CaptureWriter, spec: &Spec, flows: &[FlowReport]) -> Self {
        let mut senders: Vec<(HostId, u16)> = flows.iter().map(|flow| (flow.src, flow.sport)).collect();
        senders.sort_unstable();
        Capture { writer, side: spec.measure.side, senders, time_scale: u64::from(spec.time_scale) }
    }

    /// Whether the packet is seen at the wanted end of its flow.
    fn wants(&self, packet: &Packet, direction: Direction) -> bool {
        let here = match direction {
            Direction::Sent => (packet.src, packet.sport),
            Direction::Received => (packet.dst, packet.dport),
        };
        match self.side {
            CaptureSide::Both => true,
            CaptureSide::Sender => self.senders.binary_search(&here).is_ok(),
            CaptureSide::Receiver => self.senders.binary_search(&here).is_err(),
        }
    }
}

impl CaptureSink for Capture {
    fn packet(&mut self, packet: &Packet, at: Time, host: HostId, direction: Direction) {
        if self.wants(packet, direction) {
            self.writer.write(packet, at.as_ps() / self.time_scale / 1000, host, direction);
        }
    }
}
