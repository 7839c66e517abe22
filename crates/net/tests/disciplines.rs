//! One suite for every discipline on every kind of port: random packets come, and after each the port is compared with
//! a brute-force model that knows every packet's start and end.

use firstlight_net::{
    Band, ClassPort, Discipline, Drops, Ecn, FifoPort, Length, Packet, PacketId, PhantomConfig, RedConfig, Serializer,
    SwitchPort,
};
use firstlight_units::{Bytes, Rate, Span, Time};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

/// 10 Gb/s: a byte lasts 800 ps.
const PS_PER_BYTE: u64 = 800;
const DELAY: Span = Span::from_ns(1500);

fn serializer() -> Serializer {
    Serializer::new(Rate::from_gbps(10), 1)
}

/// A packet that a port has taken.
#[derive(Clone, Debug)]
struct ServedPacket {
    id: u32,
    class: usize,
    size: u64,
    /// Service; the end is `None` while it has not begun.
    start: u64,
    end: Option<u64>,
}

/// A non-preemptive server of strict priorities, step by step.
struct PriorityServer {
    classes: usize,
    waiting: Vec<ServedPacket>,
    started: Vec<ServedPacket>,
    free: u64,
}

impl PriorityServer {
    /// Starts all that starts up to `now`.
    fn run(&mut self, now: u64) {
        while self.free <= now && !self.waiting.is_empty() {
            let best = (0..self.waiting.len()).rev().max_by_key(|i| self.waiting[*i].class).unwrap();
            let mut job = self.waiting.remove(best);
            job.start = self.free;
            self.free += job.size * PS_PER_BYTE;
            job.end = Some(self.free);
            self.started.push(job);
        }
    }

    fn take(&mut self, mut job: ServedPacket, now: u64) {
        if self.free <= now {
            job.start = now;
            self.free = now + job.size * PS_PER_BYTE;
            job.end = Some(self.free);
            self.started.push(job);
        } else {
            self.waiting.push(job);
        }
    }

    /// Packets that wait and unsent bytes as time, of one class or of all.
    fn load(&self, class: Option<usize>, now: u64) -> (u32, u64) {
        let of = |job: &&ServedPacket| class.is_none_or(|class| class == job.class);
        let waiting = self.waiting.iter().filter(of);
        let served: u64 = self.started.iter().filter(of).map(|job| job.end.unwrap().saturating_sub(now)).sum();
        (waiting.clone().count() as u32, served + waiting.map(|job| job.size * PS_PER_BYTE).sum::<u64>())
    }
}

#[derive(Clone, Debug)]
struct OfferedPacket {
    gap_ns: u64,
    size: u16,
    class: u8,
    ecn: Ecn,
}

fn steps() -> impl Strategy<Value = Vec<OfferedPacket>> {
    let ecn = prop::sample::select(vec![Ecn::NotEct, Ecn::Ect0, Ecn::Ect0, Ecn::Ect1, Ecn::Ce]);
    // Now and then long enough to empty the port, often an exact multiple of a packet's time.
    let gap = prop_oneof![3 => 0u64..2000, 3 => Just(0), 2 => (0u64..4).prop_map(|n| n * 800), 1 => 0u64..30_000];
    let size = prop_oneof![2 => Just(1000u16), 1 => 40u16..3000];
    let step =
        (gap, size, 0u8..8, ecn).prop_map(|(gap_ns, size, class, ecn)| OfferedPacket { gap_ns, size, class, ecn });
    prop::collection::vec(step, 1..250)
}

fn drops() -> impl Strategy<Value = Drops> {
    prop::sample::select(vec![Drops::Beyond, Drops::Unmarkable, Drops::Nothing])
}

fn discipline() -> impl Strategy<Value = Discipline> {
    let length = || {
        let bytes = (0u64..9000).prop_map(|n| Length::Bytes(Bytes::new(n)));
        prop_oneof![(0u32..8).prop_map(Length::Packets), bytes]
    };
    let red = (0u32..4, 0u32..6, 0.01f64..1.0, 0.05f64..1.0, any::<bool>(), drops(), any::<bool>());
    let red = red.prop_map(|(min, width, weight, max_probability, gentle, drops, bytes)| {
        let band = match bytes {
            false => Band::packets(min, min + width),
            true => Band::bytes(u64::from(min) * 1000, u64::from(min + width) * 1000),
        };
        Discipline::red(RedConfig { weight, max_probability, gentle, drops, ..RedConfig::new(band) })
    });
    let phantom = (0.3f64..1.0, 0u64..5000);
    let marking = prop_oneof![
        Just(Discipline::default()),
        (length(), any::<bool>()).prop_map(|(ecn, drop_non_ect)| Discipline {
            ecn: Some(ecn),
            drop_non_ect: f64::from(u8::from(drop_non_ect)),
            ..Discipline::default()
        }),
        red,
        phantom.prop_map(|(drain, n)| Discipline::phantom(PhantomConfig { drain, threshold: Bytes::new(n) })),
    ];
    (prop::option::of(length()), marking).prop_map(|(queue, marking)| Discipline { queue, ..marking })
}

/// The model's verdict on a limit, and on a threshold, for a packet that does not start at once.
fn exceeds(limit: Option<Length>, (waiting, unsent): (u32, u64), size: u16) -> bool {
    let with = unsent + u64::from(size) * PS_PER_BYTE;
    match limit {
        None => false,
        Some(Length::Packets(most)) => waiting + 1 > most,
        Some(Length::Bytes(most)) => with > most.get() * PS_PER_BYTE,
    }
}

/// Drives a port whose class c has discipline c; one class for a port that knows none.
fn suite<P: SwitchPort>(mut port: P, disciplines: &[Discipline], steps: &[OfferedPacket]) -> TestCaseResult {
    let classes = disciplines.len();
    let mut model = PriorityServer { classes, waiting: Vec::new(), started: Vec::new(), free: 0 };
    let mut records: Vec<Packet> = Vec::new();
    let mut event: Option<Time> = None;
    let (mut now, mut arrived, mut marked, mut peak) = (0u64, Vec::new(), 0u64, 0);
    let last = OfferedPacket { gap_ns: 10_000_000, size: 40, class: 0, ecn: Ecn::Ect0 };
    for step in steps.iter().chain([&last]) {
        now += step.gap_ns * 1000;
        // For every other packet, events at the moment of its arrival come first: both orders are legal.
        let first = records.len().is_multiple_of(2);
        while let Some(at) = event.filter(|at| at.as_ps() < now || first && at.as_ps() == now) {
            let (id, next) = port.step(at, |id| {
                assert_ne!(records[id.index()].ecn(), Ecn::NotEct, "marks are for those that understand them");
                marked += u64::from(records[id.index()].ecn() != Ecn::Ce);
                records[id.index()].mark();
            });
            prop_assert!(next.is_none_or(|next| next >= at));
            arrived.extend(id.map(|id| (id.0, at.as_ps())));
            event = next;
        }
        model.run(now);
        let time = Time::from_ps(now);
        check_load(&port, &model, time)?;

        let class = usize::from(step.class).min(classes - 1);
        let (load, at_once) = (model.load(Some(class), now), model.free <= now);
        let mut packet = Packet::default().with_size(step.size).with_ecn(step.ecn);
        packet.set_class(step.class);
        let id = records.len() as u32;
        let got = port.offer(PacketId(id), &mut packet, time);
        let Discipline { queue, ecn, drop_non_ect, .. } = disciplines[class];
        let unwanted = drop_non_ect == 1.0 && step.ecn == Ecn::NotEct && exceeds(ecn, load, step.size);
        let full = !at_once && (exceeds(queue, load, step.size) || unwanted);
        let early = disciplines[class].has_dropping_table();
        prop_assert!(got.is_err() == full || early && got.is_err());
        if ecn.is_some() {
            let over = got.is_ok() && !at_once && exceeds(ecn, load, step.size);
            let expected = if over && step.ecn != Ecn::NotEct { Ecn::Ce } else { step.ecn };
            prop_assert_eq!(packet.ecn(), expected);
        }
        prop_assert!(packet.ecn() == step.ecn || packet.ecn() == Ecn::Ce && step.ecn != Ecn::NotEct);
        marked += u64::from(packet.ecn() != step.ecn);
        records.push(packet);
        if let Ok(reported) = got {
            model.take(ServedPacket { id, class, size: u64::from(step.size), start: 0, end: None }, now);
            prop_assert!(
                reported.is_none_or(|reported| event.is_none_or(|event| reported < event)),
                "an event only comes nearer"
            );
            event = reported.or(event);
        }
        check_load(&port, &model, time)?;
        peak = peak.max(model.load(None, now).0);
        prop_assert_eq!(port.peak(), u64::from(peak));
        prop_assert_eq!(port.offered(), records.len() as u64);
        prop_assert_eq!(port.offered(), port.delivered() + port.dropped() + port.held());
        prop_assert_eq!(port.delivered(), arrived.len() as u64);
        prop_assert_eq!(event.is_some(), port.held() > 0, "it is stepped while it holds something, and only then");
    }
    while let Some(at) = event {
        let (id, next) = port.step(at, |_| panic!("the last packet comes alone, and nothing marks it"));
        arrived.extend(id.map(|id| (id.0, at.as_ps())));
        event = next;
    }
    model.run(u64::MAX - 1);
    // Never idle while something waits, in order within a class, higher classes first: all that is the model's order.
    let expected: Vec<_> = model.started.iter().map(|job| (job.id, job.end.unwrap() + DELAY.as_ps())).collect();
    prop_assert_eq!(&arrived, &expected);
    prop_assert_eq!((port.held(), port.delivered()), (0, arrived.len() as u64));
    prop_assert_eq!(port.marked(), marked);
    if let [Discipline { phantom: Some(config), .. }] = disciplines {
        check_phantom(config, &model, &records, steps)?;
    }
    Ok(())
}

fn check_load<P: SwitchPort>(port: &P, model: &PriorityServer, now: Time) -> TestCaseResult {
    let (waiting, unsent) = model.load(None, now.as_ps());
    prop_assert_eq!(port.waiting_at(now), waiting);
    prop_assert_eq!(port.backlog(now).get(), unsent.div_ceil(PS_PER_BYTE));
    prop_assert!(model.classes > 0);
    Ok(())
}

/// A phantom queue's marks, with its counter in bytes.
fn check_phantom(
    config: &PhantomConfig,
    model: &PriorityServer,
    records: &[Packet],
    steps: &[OfferedPacket],
) -> TestCaseResult {
    let (mut counter, mut last) = (0.0f64, 0);
    for job in &model.started {
        let end = job.end.unwrap();
        counter = (counter - (end - last) as f64 * config.drain / PS_PER_BYTE as f64).max(0.0);
        let offered = steps.get(job.id as usize).map_or(Ecn::Ect0, |step| step.ecn);
        let threshold = config.threshold.get() as f64;
        // The port's drain rate is a whole number of bits per second, and the time of each packet may be off by a
        // picosecond: spare what is on the edge.
        let edge = 0.01 + records.len() as f64 / PS_PER_BYTE as f64;
        if (counter - threshold).abs() > edge && offered != Ecn::NotEct {
            let marked = counter > threshold;
            prop_assert_eq!(
                records[job.id as usize].ecn() == Ecn::Ce,
                marked || offered == Ecn::Ce,
                "packet {}",
                job.id
            );
        }
        (counter, last) = (counter + job.size as f64, end);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn fifo_ports(discipline in discipline(), steps in steps(), seed in any::<u64>()) {
        suite(FifoPort::new(serializer(), DELAY, &discipline, seed), &[discipline], &steps)?;
    }

    #[test]
    fn class_ports(disciplines in prop::collection::vec(discipline(), 1..8), steps in steps(), seed in any::<u64>()) {
        suite(<ClassPort>::new(serializer(), DELAY, &disciplines, seed), &disciplines, &steps)?;
    }

    #[test]
    fn a_port_of_one_class(discipline in discipline(), steps in steps(), seed in any::<u64>()) {
        suite(<ClassPort>::new(serializer(), DELAY, &[discipline], seed), &[discipline], &steps)?;
    }

    /// One class does exactly what a FIFO port does, chance included.
    #[test]
    fn one_class_is_a_fifo(discipline in discipline(), steps in steps(), seed in any::<u64>()) {
        let fifo = verdicts(FifoPort::new(serializer(), DELAY, &discipline, seed), &steps);
        let class = verdicts(<ClassPort>::new(serializer(), DELAY, &[discipline], seed), &steps);
        prop_assert_eq!(fifo, class);
    }
}

/// The end of each packet: whether it was taken, and its ECN field in the end.
fn verdicts<P: SwitchPort>(mut port: P, steps: &[OfferedPacket]) -> Vec<(bool, Ecn)> {
    let mut packets: Vec<(bool, Packet)> = Vec::new();
    let (mut now, mut event) = (Time::ZERO, None);
    let run = |port: &mut P, packets: &mut Vec<(bool, Packet)>, event: &mut Option<Time>, until: Time| {
        while let Some(at) = event.filter(|at| *at <= until) {
            *event = port.step(at, |id| _ = packets[id.index()].1.mark()).1;
        }
    };
    for step in steps {
        now += Span::from_ns(step.gap_ns);
        run(&mut port, &mut packets, &mut event, now);
        let mut packet = Packet::default().with_size(step.size).with_ecn(step.ecn);
        let got = port.offer(PacketId(packets.len() as u32), &mut packet, now);
        event = got.ok().flatten().or(event);
        packets.push((got.is_ok(), packet));
    }
    run(&mut port, &mut packets, &mut event, Time::from_ps(u64::MAX / 2));
    packets.into_iter().map(|(taken, packet)| (taken, packet.ecn())).collect()
}

/// A queue that is held at q packets has the average q, so the share that RED marks is 2 / (1 / p_b + 1).
#[test]
fn red_marks_what_its_formula_says() {
    let red = RedConfig { max_probability: 0.1, weight: 0.5, ..RedConfig::new(Band::packets(5, 25)) };
    let discipline = Discipline::red(red);
    let mut port = FifoPort::new(serializer(), Span::ZERO, &discipline, 11);
    let packet = Packet::default().with_size(1000).with_ecn(Ecn::Ect0);
    // One in service and 16 that wait: then one comes whenever one leaves and the next one starts.
    (0..17).for_each(|_| _ = port.offer(PacketId(0), &mut packet.clone(), Time::ZERO));
    let mut share = |packets: u64| {
        let before = port.marked();
        let mut now = port.departure() - Span::from_ns(17 * 800);
        for _ in 0..packets {
            now += Span::from_ns(800);
            assert_eq!(port.waiting_at(now), 15);
            port.offer(PacketId(0), &mut packet.clone(), now).unwrap();
            port.arrive();
        }
        port.marked() - before
    };
    share(100);
    // p_b = 0.1 * (15 - 5) / (25 - 5) = 0.05: gaps are uniform on 1..=20, their mean 10.5, their deviation 5.77.
    // Of 105,000 packets 10,000 are marked, with a deviation of sqrt(10,000) * 5.77 / 10.5 = 55.
    let marks = share(105_000);
    assert!(marks.abs_diff(10_000) < 4 * 55, "{marks} marks");
}

/// Two may wait unmarked: the first packet is in service, and the third that waits is the first beyond the threshold.
#[test]
fn a_threshold_drops_what_it_cannot_mark() {
    let queue = Some(Length::Packets(4));
    let fate = |ecn: Length, drop_non_ect: f64| {
        let discipline = Discipline { queue, ecn: Some(ecn), drop_non_ect, ..Discipline::default() };
        let arrivals = [Ecn::NotEct, Ecn::NotEct, Ecn::Ect0, Ecn::NotEct, Ecn::Ect0, Ecn::NotEct, Ecn::Ect1, Ecn::Ect0];
        verdicts(FifoPort::new(serializer(), DELAY, &discipline, 0), &arrivals.map(at_once))
    };
    let at_once_and_below = [(true, Ecn::NotEct), (true, Ecn::NotEct), (true, Ecn::Ect0)];
    // Beyond it ECT is queued and marked, non-ECT is dropped and takes no room; the fifth that would wait finds four.
    let dropping = [(false, Ecn::NotEct), (true, Ecn::Ce), (false, Ecn::NotEct), (true, Ecn::Ce), (false, Ecn::Ect0)];
    let passing = [(true, Ecn::NotEct), (true, Ecn::Ce), (false, Ecn::NotEct), (false, Ecn::Ect1), (false, Ecn::Ect0)];
    // In bytes the packet in service counts as well: three of 1,000.
    for ecn in [Length::Packets(2), Length::Bytes(Bytes::new(3000))] {
        assert_eq!(fate(ecn, 1.0), [&at_once_and_below[..], &dropping].concat(), "{ecn}");
        assert_eq!(fate(ecn, 0.0), [&at_once_and_below[..], &passing].concat(), "{ecn}");
    }
}

/// A packet of 1,000 bytes that comes with the one before it.
fn at_once(ecn: Ecn) -> OfferedPacket {
    OfferedPacket { gap_ns: 0, size: 1000, class: 0, ecn }
}

/// 10,000 packets beyond the threshold, a quarter of them dropped: four standard deviations are 173.
#[test]
fn a_threshold_drops_with_its_probability() {
    let discipline = Discipline { ecn: Some(Length::Packets(1)), drop_non_ect: 0.25, ..Discipline::default() };
    let steps = vec![at_once(Ecn::NotEct); 10_002];
    let fates = verdicts(FifoPort::new(serializer(), DELAY, &discipline, 7), &steps);
    let dropped = fates.iter().filter(|(taken, _)| !taken).count();
    assert!(dropped.abs_diff(2500) < 173, "{dropped}");
}
