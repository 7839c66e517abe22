//! Probes: a thread for each, which sends its datagrams of UDP at their times and otherwise sleeps, and one for each
//! host that receives some, which discards them.

use crate::clock::{self, Stopwatch};
use crate::failure::{Context, GuestFailure};
use crate::hosts::GuestHost;
use crate::socket;
use firstlight_linux::{HostPlan, ProbePlan};
use std::collections::BTreeSet;
use std::net::{SocketAddrV4, UdpSocket};

/// Payload of datagrams; none is longer.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// The sockets of all probes.
pub struct GuestProbes {
    /// The sending end of each probe.
    pub senders: Vec<ProbeSender>,
    /// The socket of each host and port that receives datagrams.
    pub receivers: Vec<ProbeReceiver>,
}

/// The sending end of a probe.
pub struct ProbeSender {
    plan: ProbePlan,
    /// The probe in words, for error messages.
    route: String,
    socket: UdpSocket,
}

/// A port that receives datagrams of probes.
pub struct ProbeReceiver {
    /// The name of its host.
    host: String,
    socket: UdpSocket,
}

/// Makes the sockets of all probes, host by host.
pub fn prepare(plans: &[ProbePlan], hosts: &[GuestHost], addresses: &[HostPlan]) -> Result<GuestProbes, GuestFailure> {
    let mut probes = GuestProbes { senders: vec![], receivers: vec![] };
    for (index, host) in hosts.iter().enumerate() {
        let (sent, ports): (Vec<&ProbePlan>, BTreeSet<u16>) = (
            plans.iter().filter(|plan| plan.from == index).collect(),
            plans.iter().filter(|plan| plan.to == index).map(|plan| plan.to_port).collect(),
        );
        if sent.is_empty() && ports.is_empty() {
            continue;
        }
        host.enter()?;
        let bound = |port: u16, class: u8| {
            socket::datagrams(SocketAddrV4::new(addresses[index].address, port), class)
                .map_err(|error| GuestFailure::new(format!("probes on {}: {error}", host.name)))
        };
        for plan in sent {
            let route = format!("probe from {} to {}", host.name, hosts[plan.to].name);
            let to = SocketAddrV4::new(addresses[plan.to].address, plan.to_port);
            let socket = bound(plan.from_port, plan.class)?;
            socket.connect(to).context(|| format!("{route}: cannot connect to {to}"))?;
            probes.senders.push(ProbeSender { plan: plan.clone(), route, socket });
        }
        for port in ports {
            probes.receivers.push(ProbeReceiver { host: host.name.clone(), socket: bound(port, 0)? });
        }
    }
    Ok(probes)
}

impl GuestProbes {
    /// How many threads the probes have; all of them wait for the start.
    pub fn threads(&self) -> usize {
        self.senders.len() + self.receivers.len()
    }
}

impl ProbeSender {
    /// Sends each datagram at its time from now on, or as soon as the socket has room.
    pub fn send(&self) -> Result<(), GuestFailure> {
        let watch = Stopwatch::new()?;
        watch.start()?;
        let datagram = &ZEROS[..self.plan.payload as usize];
        for time in self.plan.times() {
            clock::sleep(time.saturating_sub(watch.elapsed()?));
            self.socket.send(datagram).context(|| format!("{}: cannot send", self.route))?;
        }
        Ok(())
    }
}

impl ProbeReceiver {
    /// Discards what arrives.
    pub fn receive(&self) -> Result<(), GuestFailure> {
        loop {
            // What the buffer has no room for is discarded.
            self.socket.recv(&mut []).context(|| format!("probes on {}: cannot receive", self.host))?;
        }
    }
}
