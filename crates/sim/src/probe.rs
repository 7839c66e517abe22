//! Probes: datagrams at a constant rate or in bursts, without any transport (the ping ladder of DX, ATC'15, Fig. 9;
//! applications on UDP).

use crate::config::BuildError;
use firstlight_net::{FlowTuple, HostId, Packet, ProbeDatagram, Stamps};
use firstlight_units::{Bytes, Span, Time};
use hdrhistogram::Histogram;

/// Bytes of the IP and the UDP header.
const HEADER: u16 = ProbeDatagram::HEADER as u16;

/// A stream of equal datagrams.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeConfig {
    /// The host that sends.
    pub src: HostId,
    /// The host that receives.
    pub dst: HostId,
    /// IP length of each datagram in bytes, 28 or more.
    pub size: u16,
    /// Interval from one datagram to the next, in the fabric's own time.
    pub every: Span,
    /// When the first datagram is sent, in the fabric's own time.
    pub start: Span,
    /// How many datagrams; `None` for no end.
    pub count: Option<u64>,
    /// Later bursts, at the same interval: when the first datagram of each is sent, in the fabric's own time, and how
    /// many there are. Each burst begins after the one before is over.
    pub more: Vec<(Span, u64)>,
    /// Traffic class: 0 to 7.
    pub class: u8,
    /// Bytes of the socket's buffer, which holds datagrams until they have left the host's interface: while it is full
    /// the program waits. `None` for no limit.
    pub send_buffer: Option<Bytes>,
    /// Whether each datagram is reported, and not their number alone.
    pub record: bool,
    /// Whether the hosts are external: their own program sends the datagrams then, and the driver of these hosts hands
    /// them over ([`World::take_probe`](crate::World::take_probe)).
    pub external: bool,
}

/// The report of a probe's datagrams. Times are on the engine's clock.
#[derive(Clone, Debug)]
pub struct ProbeReport {
    /// The host that sent.
    pub src: HostId,
    /// The host that was to receive.
    pub dst: HostId,
    /// UDP port of the sender. That of the receiver is [`ProbeDatagram::PORT`].
    pub sport: u16,
    /// Datagrams that were sent.
    pub sent: u64,
    /// When the last datagram was sent.
    pub last_sent: Option<Time>,
    /// Datagrams that arrived.
    pub received: u64,
    /// Latency from one host to the other, in nanoseconds, to three digits.
    pub latency: Histogram<u64>,
    /// Each datagram that arrived, when that was asked for.
    pub samples: Vec<ProbeSample>,
}

/// One datagram that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeSample {
    /// When the datagram was sent.
    pub sent: Time,
    /// Latency of the datagram.
    pub latency: Span,
    /// Timestamps of the interfaces.
    pub stamps: Stamps,
}

#[derive(Debug)]
pub(crate) struct ProbeSource {
    config: ProbeConfig,
    every: Span,
    scale: u64,
    /// Datagrams that the burst still has.
    left: u64,
    /// How many of the later bursts have begun.
    begun: usize,
    /// When the next datagram is due; it may wait for room then.
    due: Time,
    /// Bytes that have not left the interface, where the socket has a buffer.
    unsent: u64,
    /// The program waits until that is less.
    waits: bool,
    report: ProbeReport,
}

impl ProbeSource {
    /// Probe number `index` of a world with `hosts` hosts and this time scale. `externals` probes of external hosts
    /// come before it.
    pub(crate) fn new(
        config: ProbeConfig,
        index: usize,
        externals: usize,
        hosts: usize,
        scale: u32,
    ) -> Result<Self, BuildError> {
        check(&config, externals, hosts).map_err(|problem| BuildError::Probe { index, problem })?;
        let latency = Histogram::new(3).expect("three digits are a legal precision");
        let (src, dst) = (config.src, config.dst);
        let sport =
            if config.external { ProbeDatagram::FIRST_EXTERNAL + externals as u16 } else { ProbeDatagram::PORT };
        let report = ProbeReport { src, dst, sport, sent: 0, last_sent: None, received: 0, latency, samples: vec![] };
        let (scale, left) = (u64::from(scale), config.count.unwrap_or(u64::MAX));
        let due = Time::ZERO + config.start * scale;
        Ok(ProbeSource {
            every: config.every * scale,
            scale,
            left,
            due,
            begun: 0,
            unsent: 0,
            waits: false,
            config,
            report,
        })
    }

    /// When the first datagram is sent; `None` where external hosts send it.
    pub(crate) fn starts_at(&self) -> Option<Time> {
        (!self.config.external).then_some(self.due)
    }

    /// The ports and hosts by which a datagram of external hosts is known.
    pub(crate) fn external_tuple(&self) -> Option<FlowTuple> {
        let ProbeReport { src, dst, sport, .. } = self.report;
        self.config.external.then_some(FlowTuple { src, sport, dst, dport: ProbeDatagram::PORT })
    }

    pub(crate) fn host(&self) -> HostId {
        self.config.src
    }

    /// Whether the socket has a buffer.
    pub(crate) fn has_buffer(&self) -> bool {
        self.config.send_buffer.is_some()
    }

    /// Whether the socket has room for a datagram. If not, [`ProbeSource::on_left`] says when it has.
    pub(crate) fn has_room(&mut self) -> bool {
        self.waits = self.config.send_buffer.is_some_and(|buffer| self.unsent >= buffer.get());
        !self.waits
    }

    /// A datagram has entered the interface.
    pub(crate) fn on_taken(&mut self) {
        if self.has_buffer() {
            self.unsent += u64::from(self.config.size);
        }
    }

    /// A datagram has left the interface. Returns whether the program has waited for this and may now send.
    pub(crate) fn on_left(&mut self) -> bool {
        if self.has_buffer() {
            self.unsent -= u64::from(self.config.size);
        }
        self.waits && self.has_room()
    }

    /// The datagram that is sent at `now`.
    pub(crate) fn datagram(&self, index: usize, now: Time) -> Packet {
        let ProbeConfig { src, dst, size, class, .. } = self.config;
        Packet::new_probe(src, dst, size, index, now).with_class(class)
    }

    /// A datagram is sent, by a simulated host or an external one.
    pub(crate) fn count_sent(&mut self, now: Time) {
        self.report.sent += 1;
        self.report.last_sent = Some(now);
    }

    /// A datagram was sent. Returns when the next one is due.
    pub(crate) fn on_sent(&mut self, now: Time) -> Option<Time> {
        self.count_sent(now);
        self.left -= 1;
        if self.left > 0 {
            self.due += self.every;
            return Some(self.due);
        }
        let &(start, count) = self.config.more.get(self.begun)?;
        (self.left, self.begun) = (count, self.begun + 1);
        self.due = Time::ZERO + start * self.scale;
        Some(self.due)
    }

    pub(crate) fn on_arrival(&mut self, datagram: ProbeDatagram<'_>, now: Time) {
        let sent = datagram.sent();
        let latency = now - sent;
        self.report.received += 1;
        self.report.latency.record(latency.as_ps() / 1000).expect("the histogram grows as needed");
        if self.config.record {
            self.report.samples.push(ProbeSample { sent, latency, stamps: datagram.stamps() });
        }
    }

    pub(crate) fn report(&self) -> ProbeReport {
        self.report.clone()
    }
}

fn check(config: &ProbeConfig, externals: usize, hosts: usize) -> Result<(), String> {
    if config.external && externals >= ProbeDatagram::MOST_EXTERNAL {
        return Err(format!("external hosts have at most {} probes", ProbeDatagram::MOST_EXTERNAL));
    }
    if let Some(host) = [config.src, config.dst].into_iter().find(|host| host.index() >= hosts) {
        return Err(format!("host {} does not exist: there are hosts 0 to {}", host.0, hosts - 1));
    }
    if config.src == config.dst {
        return Err(format!("host {} sends to itself", config.src.0));
    }
    if config.size < HEADER {
        return Err(format!("{} B hold no IP and UDP header: use at least {HEADER}", config.size));
    }
    if config.every.is_zero() {
        return Err("an interval of zero never ends: use more".into());
    }
    let mut over = config.count.map(|count| config.start + config.every * count);
    for &(start, count) in &config.more {
        if count == 0 || over.is_none_or(|over| start < over) {
            return Err(format!("the burst at {start} is empty, or begins before the one before is over"));
        }
        over = Some(start + config.every * count);
    }
    if config.class > 7 {
        return Err(format!("there is no traffic class {}: there are 0 to 7", config.class));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(count: Option<u64>, more: &[(u64, u64)]) -> Result<ProbeSource, BuildError> {
        let more = more.iter().map(|&(us, count)| (Span::from_us(us), count)).collect();
        let (src, dst, every, start) = (HostId(0), HostId(1), Span::from_us(10), Span::from_us(5));
        let config = ProbeConfig {
            src,
            dst,
            size: 100,
            every,
            start,
            count,
            more,
            class: 0,
            send_buffer: None,
            record: false,
            external: false,
        };
        ProbeSource::new(config, 3, 0, 2, 2)
    }

    /// At a scale of 2: 20 us from one to the next, bursts at 10, 200 and 240 us.
    #[test]
    fn bursts_by_hand() {
        let mut probe = probe(Some(2), &[(100, 1), (120, 2)]).unwrap();
        let mut sent = vec![probe.starts_at().unwrap()];
        while let Some(next) = probe.on_sent(sent[sent.len() - 1]) {
            sent.push(next);
        }
        assert_eq!(sent, [10, 30, 200, 240, 260].map(|us| Time::ZERO + Span::from_us(us)));
        let report = probe.report();
        assert_eq!((report.sent, report.last_sent), (5, Some(sent[4])));
    }

    #[test]
    fn bursts_follow_each_other() {
        assert!(probe(Some(2), &[(25, 1)]).is_ok());
        for (count, more) in [(Some(2), (24, 1)), (Some(2), (100, 0)), (None, (100, 1)), (Some(2), (0, 1))] {
            let error = probe(count, &[more]).unwrap_err().to_string();
            assert!(error.contains("is empty, or begins before the one before is over"), "{error}");
        }
    }
}
