//! Chooses the packets of a run that are captured.
//!
//! One interface per host, named as the experiment names it; a packet is recorded where it passes that host's edge. By
//! default only the sender's host of each flow records, as tcpdump there would: otherwise a reader sees every packet
//! twice. A packet of a program, which belongs to none of the experiment's flows, is recorded where it is sent.
//! Timestamps are the experiment's own time (divided by `time_scale`) since the start of the run.

use super::plan::addresses;
use crate::error::LabError;
use firstlight_formats::capture::{CaptureInterface, CaptureNetwork, CaptureWriter};
use firstlight_linux::ipv6_of;
use firstlight_net::{Direction, HostId, Packet};
use firstlight_sim::{CaptureSink, FlowReport, World};
use firstlight_spec::{CaptureSide, Network, Spec};
use firstlight_units::Time;
use std::net::Ipv4Addr;
use std::path::Path;

/// Makes `world` write its packets to a file that will be at `path`. [`CaptureWriter::finish`] completes the file,
/// after [`Fabric::take_capture`](firstlight_sim::Fabric::take_capture).
///
/// # Errors
/// When the file cannot be begun.
pub fn start_capture(spec: &Spec, world: &mut World, path: &Path) -> Result<CaptureWriter, LabError> {
    let writer = CaptureWriter::create(path, &network(spec))?;
    let sink = Capture::new(writer.clone(), spec, &world.flows());
    world.fabric_mut().set_capture(Box::new(sink));
    Ok(writer)
}

fn network(spec: &Spec) -> CaptureNetwork {
    let interface = |host: usize| CaptureInterface {
        name: host_name(host, spec),
        rate: spec.network.host_rate(HostId(host as u16)),
    };
    CaptureNetwork {
        interfaces: (0..spec.hosts()).map(interface).collect(),
        addresses: addresses(spec),
        ipv6: spec.linux.as_ref().filter(|linux| linux.ipv6).map(|_| ipv6_network()),
        // IP and TCP headers without options (RFC 6691).
        mss: spec.tables.tcp.tcp.mtu - 40,
        receive_window: spec.tables.tcp.tcp.receive_window,
    }
}

/// The first bytes of hosts' IPv6 addresses.
fn ipv6_network() -> [u8; 12] {
    let [network @ .., _, _, _, _] = ipv6_of(Ipv4Addr::UNSPECIFIED).octets();
    network
}

/// `rack0.host3` on a hybrid fabric, else `host3`.
fn host_name(host: usize, spec: &Spec) -> String {
    let per_rack = spec.hosts_per_rack;
    match spec.network {
        Network::Graph(_) => format!("host{host}"),
        Network::Hybrid(_) => format!("rack{}.host{}", host / per_rack, host % per_rack),
    }
}

/// Records the packets at the wanted ends of flows.
struct Capture {
    writer: CaptureWriter,
    side: CaptureSide,
    /// Host and port of each flow's sender, in order.
    senders: Vec<(HostId, u16)>,
    /// Host and port of each flow's receiver, in order.
    receivers: Vec<(HostId, u16)>,
    time_scale: u64,
}

impl Capture {
    fn new(writer: CaptureWriter, spec: &Spec, flows: &[FlowReport]) -> Self {
        let mut senders: Vec<(HostId, u16)> = flows.iter().map(|flow| (flow.src, flow.sport)).collect();
        let mut receivers: Vec<(HostId, u16)> = flows.iter().map(|flow| (flow.dst, flow.dport)).collect();
        senders.sort_unstable();
        receivers.sort_unstable();
        Capture {
            writer,
            side: spec.tables.measure.capture_side,
            senders,
            receivers,
            time_scale: u64::from(spec.tables.time_scale),
        }
    }

    /// Whether the packet passes the wanted end of its flow.
    fn wants(&self, packet: &Packet, direction: Direction) -> bool {
        let here = match direction {
            Direction::Sent => (packet.src(), packet.sport()),
            Direction::Received => (packet.dst(), packet.dport()),
        };
        let sends = if packet.tcp().is_some() && self.senders.binary_search(&here).is_ok() {
            true
        } else if packet.tcp().is_some() && self.receivers.binary_search(&here).is_ok() {
            false
        } else {
            direction == Direction::Sent
        };
        match self.side {
            CaptureSide::Both => true,
            CaptureSide::Sender => sends,
            CaptureSide::Receiver => !sends,
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
