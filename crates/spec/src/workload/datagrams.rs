//! Datagrams from host to host, at a constant rate or on and off.

use super::arrivals::Arrivals;
use super::{Common, after};
use crate::error::Problem;
use crate::expander::{Expander, HostPair, MOST_FLOWS, TrafficEntry};
use crate::host_kind::HostKind;
use firstlight_net::HostId;
use firstlight_units::{Bytes, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Headers of IP and UDP.
const HEADERS: u64 = 28;

/// Packets at a constant rate from one host to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// The table that the probe comes from.
    pub entry: TrafficEntry,
    /// Sender.
    pub src: HostId,
    /// Receiver.
    pub dst: HostId,
    /// The kind of both ends' hosts.
    pub hosts: HostKind,
    /// Size of each packet, IP header included.
    pub packet: Bytes,
    /// Time from one packet to the next.
    pub interval: Span,
    /// How many packets; `None` when they go on until the run's end.
    pub count: Option<u64>,
    /// When the first packet is sent.
    pub start: Span,
    /// Later bursts, at the same interval: when each starts, and how many packets it has.
    pub more: Vec<(Span, u64)>,
    /// Traffic class of the packets, 0 to 7.
    pub class: u8,
    /// The most bytes that a socket holds of packets that have not left the host's interface; `None` for no limit.
    pub send_buffer: Option<Bytes>,
}

/// The size of datagrams, and the buffer of their socket.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Datagrams {
    /// Size of each packet, IP header included.
    #[schemars(extend("x-least" = "28B", "x-most" = "65535B", "x-without" = "`hosts.mtu`; of a `probe` 64B"))]
    pub packet: Option<Bytes>,
    /// The most bytes that a socket holds of packets that have not left the host's interface. While it holds that many,
    /// the program waits; packets that were due meanwhile follow at once.
    #[schemars(extend("x-most" = "1099511627776B", "x-without" = "no limit"))]
    pub send_buffer: Option<Bytes>,
}

impl Datagrams {
    /// A key that is given.
    pub(super) fn given(&self) -> Option<&'static str> {
        self.packet.map(|_| "packet").or(self.send_buffer.map(|_| "send_buffer"))
    }

    /// Datagrams for each pair, with this payload in all.
    pub(super) fn of_size(
        &self,
        expander: &Expander<'_>,
        common: &Common,
        pairs: &[HostPair],
        rate: Rate,
        size: Bytes,
    ) -> Result<Vec<Probe>, Box<Problem>> {
        let packet = self.packet.unwrap_or(expander.experiment.hosts.mtu);
        let one = Probe::new(expander, common, pairs, packet, ("rate", rate.tx_time(packet)), self.send_buffer)?;
        let payload = packet.get().saturating_sub(HEADERS);
        if payload == 0 {
            return Err(expander.problem("packet", "it holds no payload besides the headers of 28 B: use more"));
        }
        let count = Some(size.get().div_ceil(payload));
        Ok(pairs.iter().map(|pair| Probe { count, ..one.between(*pair) }).collect())
    }
}

impl Probe {
    /// The packets of each of the pairs; `interval` is the time between them, with the key that gives it.
    pub(super) fn new(
        expander: &Expander<'_>,
        common: &Common,
        pairs: &[HostPair],
        packet: Bytes,
        (key, interval): (&str, Span),
        send_buffer: Option<Bytes>,
    ) -> Result<Probe, Box<Problem>> {
        expander.starts(common.start, Span::ZERO)?;
        let mtu = expander.experiment.hosts.mtu;
        if packet > mtu {
            let text = format!("{packet} are more than hosts.mtu = {mtu}: use at most that");
            return Err(expander.problem("packet", text));
        }
        let rates = &expander.directory.rates;
        let link = pairs.iter().map(|(src, _)| rates[*src]).min().expect("a pattern has pairs");
        let least = link.tx_time(expander.experiment.hosts.framing.on_link(packet));
        if interval < least {
            let text = format!(
                "the host's link of {link} does not carry it: {packet} take {least}, and come every {interval}"
            );
            return Err(expander.problem(key, text));
        }
        Ok(Probe {
            entry: expander.entry,
            src: HostId(0),
            dst: HostId(0),
            hosts: HostKind::Simulated,
            packet,
            interval,
            count: None,
            start: common.start,
            more: vec![],
            class: common.class.unwrap_or(0),
            send_buffer,
        })
    }

    /// The packets of this probe for one pair.
    pub(super) fn between(&self, (src, dst): HostPair) -> Probe {
        Probe { src: HostId(src as u16), dst: HostId(dst as u16), ..self.clone() }
    }
}

/// When sources are on.
pub(super) struct Bursts {
    /// When sources stop for good.
    pub end: Span,
    /// Time on and off; `None` for a source that is on all the time.
    pub times: Option<[Span; 2]>,
    /// The distribution of the times on and off.
    pub random: Option<[Arrivals; 2]>,
}

impl Bursts {
    /// The bursts of the next source, which sends `one`: when each starts, and how many packets it has.
    pub(super) fn draw(&mut self, expander: &Expander<'_>, one: &Probe) -> Result<Vec<(Span, u64)>, Box<Problem>> {
        let packets = |span: Span| span.as_ps().div_ceil(one.interval.as_ps());
        let Some(fixed) = self.times else { return Ok(vec![(one.start, packets(self.end - one.start))]) };
        let (mut bursts, mut at) = (vec![], one.start);
        while at < self.end {
            let [on, off] = self.random.as_mut().map_or(fixed, |random| random.each_mut().map(Arrivals::gap));
            // No two packets are closer than the spacing.
            let count = packets(on.min(self.end - at));
            bursts.extend((count > 0).then_some((at, count)));
            at = after(at, after(on, off, 1).max(one.interval * count), 1);
            if bursts.len() > MOST_FLOWS {
                return Err(expander.problem("on", format!("more than {MOST_FLOWS} bursts: use longer on and off")));
            }
        }
        Ok(bursts)
    }
}
