//! Packets without TCP from host to host: probes, single ones at a constant rate; and applications on UDP, at a constant
//! rate or on and off. Times on and off are fixed, or exponential; a packet goes out at once when it goes on, and the
//! next ones at the rate's spacing while it is on.

use super::super::error::Problem;
use super::super::flows::{Entry, MOST, Pair, Table};
use super::arrivals::Arrivals;
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
    /// Later bursts, at the same interval: when each starts, and how many packets it has.
    pub more: Vec<(Span, u64)>,
    /// Traffic class of the packets, 0 to 7.
    pub class: u8,
    /// What a socket holds of packets that have not left the host's interface; `None` for no limit.
    pub send_buffer: Option<Bytes>,
}

/// Probes: one for each pair of hosts.
pub(super) fn expand(table: &Table<'_>) -> Result<Vec<Probe>, Box<Problem>> {
    required(table, "to", "\"host0\"")?;
    let (pairs, packet) = (table.pairs()?, table.values.size_opt(&table.path("packet")));
    let count = table.values.integer_opt(&table.path("count"));
    let one = one(table, &pairs, packet.unwrap_or(Bytes::new(64)))?;
    Ok(pairs.iter().map(|pair| Probe { count, ..one.between(*pair) }).collect())
}

/// Applications on UDP: one for each pair of hosts.
pub(super) fn udp(table: &Table<'_>) -> Result<Vec<Probe>, Box<Problem>> {
    required(table, "to", "\"host0\"")?;
    required(table, "rate", "\"1Gbps\"")?;
    datagrams(table, &table.pairs()?, None)
}

/// Datagrams for each pair: so much payload, or until the run's end.
pub(super) fn datagrams(table: &Table<'_>, pairs: &[Pair], size: Option<Bytes>) -> Result<Vec<Probe>, Box<Problem>> {
    let packet = table.values.size_opt(&table.path("packet")).unwrap_or_else(|| table.values.size("hosts.mtu"));
    let one = one(table, pairs, packet)?;
    if let Some(size) = size {
        let payload = packet.get().saturating_sub(HEADERS);
        if payload == 0 {
            return Err(table.problem("packet", "it holds no payload besides the headers of 28 B: use more"));
        }
        let count = Some(size.get().div_ceil(payload));
        return Ok(pairs.iter().map(|pair| Probe { count, ..one.between(*pair) }).collect());
    }
    let mut bursts = Bursts::of(table, &one)?;
    let of = |pair: &Pair| {
        let all = bursts.draw(&one)?;
        let Some((&(start, count), more)) = all.split_first() else {
            return Err(table.problem("on", "nothing would be sent: use longer times on"));
        };
        Ok(Probe { start, count: Some(count), more: more.to_vec(), ..one.between(*pair) })
    };
    pairs.iter().map(of).collect()
}

/// IP and UDP.
const HEADERS: u64 = 28;

/// What the table says of the packets of each of the pairs.
fn one(table: &Table<'_>, pairs: &[Pair], packet: Bytes) -> Result<Probe, Box<Problem>> {
    let (start, _) = table.start()?;
    let mtu = table.values.size("hosts.mtu");
    if packet > mtu {
        return Err(table.problem("packet", format!("{packet} are more than hosts.mtu = {mtu}: use at most that")));
    }
    let slowest = pairs.iter().map(|(src, _)| table.shape.rates[*src]).min().expect("a pattern has pairs");
    Ok(Probe {
        entry: table.entry,
        src: HostId(0),
        dst: HostId(0),
        packet,
        interval: interval(table, packet, slowest)?,
        count: None,
        start,
        more: vec![],
        class: table.values.integer(&table.path("class")) as u8,
        send_buffer: table.values.size_opt(&table.path("send_buffer")),
    })
}

impl Probe {
    fn between(&self, (src, dst): Pair) -> Probe {
        Probe { src: HostId(src as u16), dst: HostId(dst as u16), ..self.clone() }
    }
}

/// When sources are on.
struct Bursts<'a> {
    table: &'a Table<'a>,
    end: Span,
    /// Time on and off; none for a source that is on all the time.
    times: Option<[Span; 2]>,
    /// Where they are drawn.
    random: Option<[Arrivals; 2]>,
}

impl<'a> Bursts<'a> {
    fn of(table: &'a Table<'a>, one: &Probe) -> Result<Self, Box<Problem>> {
        let values = table.values;
        let hold = values.span_opt(&table.path("hold"));
        let end = hold.map_or(table.duration(), |hold| super::after(one.start, hold, 1).min(table.duration()));
        let times = ["on", "off"].map(|key| values.span_opt(&table.path(key)));
        let exponential = values.flag(&table.path("exponential"));
        let times = match times {
            [Some(on), Some(off)] => Some([on, off]),
            [None, None] if !exponential => None,
            [None, _] => return Err(table.missing("on", "\"1ms\"")),
            [_, None] => return Err(table.missing("off", "\"1ms\"")),
        };
        let random = times.filter(|_| exponential).map(|times| {
            let drawn =
                |nth: usize| Arrivals::new(table.random(["on", "off"][nth]), Span::ZERO, times[nth].as_ps() as f64);
            [drawn(0), drawn(1)]
        });
        Ok(Bursts { table, end, times, random })
    }

    /// The bursts of the next source: when each starts, and how many packets it has.
    fn draw(&mut self, one: &Probe) -> Result<Vec<(Span, u64)>, Box<Problem>> {
        let packets = |span: Span| span.as_ps().div_ceil(one.interval.as_ps());
        let Some(fixed) = self.times else { return Ok(vec![(one.start, packets(self.end - one.start))]) };
        let (mut bursts, mut at) = (vec![], one.start);
        while at < self.end {
            let [on, off] = self.random.as_mut().map_or(fixed, |random| random.each_mut().map(Arrivals::gap));
            // No two packets are closer than the spacing.
            let count = packets(on.min(self.end - at));
            bursts.extend((count > 0).then_some((at, count)));
            at = super::after(at, super::after(on, off, 1).max(one.interval * count), 1);
            if bursts.len() > MOST {
                let text = format!("more than {MOST} bursts: use longer times");
                return Err(self.table.problem("on", text));
            }
        }
        Ok(bursts)
    }
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
