//! Probes: single packets at a constant rate from host to host, without TCP.

use super::super::error::Problem;
use super::super::flows::{Entry, Table};
use super::patterns::required;
use firstlight_net::HostId;
use firstlight_units::{Bytes, Rate, Span};

/// Packets at a constant rate from one host to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// What it comes from.
    pub entry: Entry,
    /// Sender.
    pub src: HostId,
    /// Receiver.
    pub dst: HostId,
    /// Size of each packet, IP header included.
    pub packet: Bytes,
    /// From one packet to the next.
    pub interval: Span,
    /// How many; nothing when they go on until the run's end.
    pub count: Option<u64>,
    /// When the first one is sent.
    pub start: Span,
    /// Traffic class of the packets, 0 to 7.
    pub class: u8,
}

/// One for each pair of hosts.
pub(super) fn expand(table: &Table<'_>) -> Result<Vec<Probe>, Box<Problem>> {
    let values = table.values;
    required(table, "to", "\"host0\"")?;
    let pairs = table.pairs()?;
    let (start, _) = table.start()?;
    let (packet, mtu) = (values.size(&table.path("packet")), values.size("hosts.mtu"));
    if packet > mtu {
        return Err(table.problem("packet", format!("{packet} are more than hosts.mtu = {mtu}: use at most that")));
    }
    let slowest = pairs.iter().map(|(src, _)| table.shape.rates[*src]).min().expect("a pattern has pairs");
    let interval = interval(table, packet, slowest)?;
    let probe = |&(src, dst): &(usize, usize)| Probe {
        entry: table.entry,
        src: HostId(src as u16),
        dst: HostId(dst as u16),
        packet,
        interval,
        count: values.integer_opt(&table.path("count")),
        start,
        class: values.integer(&table.path("class")) as u8,
    };
    Ok(pairs.iter().map(probe).collect())
}

fn interval(table: &Table<'_>, packet: Bytes, link: Rate) -> Result<Span, Box<Problem>> {
    let interval = table.values.span_opt(&table.path("interval"));
    let rate = table.values.rate_opt(&table.path("rate"));
    let (key, interval) = match (interval, rate) {
        (Some(_), Some(_)) => return Err(table.problem("rate", "interval and rate exclude each other: keep one")),
        (Some(interval), None) => ("interval", interval),
        (None, Some(rate)) => ("rate", rate.tx_time(packet)),
        (None, None) => return Err(table.missing("interval", "\"1ms\"")),
    };
    let least = link.tx_time(packet);
    if interval < least {
        let text =
            format!("the host's link of {link} does not carry it: {packet} take {least}, and come every {interval}");
        return Err(table.problem(key, text));
    }
    Ok(interval)
}
