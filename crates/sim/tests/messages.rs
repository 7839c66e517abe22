//! Messages with dependencies: against times worked out by hand, and any graph of them against what it asks for.

mod harness;

use firstlight_messages::{JobReport, MessageConfig, MessageEngine, Messages};
use firstlight_sim::{Fabric, FlowConfig, GraphConfig, InterfaceConfig, World};
use firstlight_transport::TcpConfig;
use firstlight_units::{Bytes, Span, Time};
use harness::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// A full segment's payload.
const MSS: u64 = 8948;

fn flow(src: u16, dst: u16, size: u64) -> FlowConfig {
    FlowConfig {
        tcp: TcpConfig { initial_window: 1000, ..TcpConfig::default() },
        ..harness::flow(src, dst, Some(size))
    }
}

/// So many bytes on a flow, a job of its own.
fn on(flow: u32, bytes: u64, job: u32) -> MessageConfig {
    MessageConfig { flow: Some(flow), bytes: Bytes::new(bytes), job, ..MessageConfig::default() }
}

/// A connection's handshake over the star's two links of 1 us, up to its first data: SYN and SYN-ACK of 60 B, an ACK of
/// 52 B.
fn handshake() -> Span {
    (ns(48) + us(1)) * 4 + ACK
}

/// 52 B at 10 Gb/s.
const ACK: Span = Span::from_ps(41_600);

/// A full packet over both links.
fn packet_time() -> Span {
    ns(7200) * 2 + us(2)
}

fn world(config: &GraphConfig, flows: Vec<FlowConfig>, messages: &Messages) -> World {
    World::with(Fabric::graph(config).unwrap(), flows, vec![], messages, 1).unwrap()
}

/// All jobs' starts and finishes, once all is complete.
fn times(world: &mut World) -> Vec<(Time, Time)> {
    world.run_until_finished(at(Span::from_secs(100)));
    assert!(world.is_finished() && world.unfinished() == 0);
    assert_conserved(world.fabric());
    world.jobs().iter().map(|job| (job.start.unwrap(), job.finish.unwrap())).collect()
}

#[test]
fn a_chain_is_forwarded_after_a_computation() {
    for scale in [1, 20] {
        let mut messages = Messages::default();
        let first = messages.push(MessageConfig { start: us(50), ..on(0, MSS, 0) }, &[]);
        messages.push(MessageConfig { delay: us(10), ..on(1, MSS, 1) }, &[first]);
        let config = GraphConfig { time_scale: scale, ..star(3, None, None) };
        let mut world = world(&config, vec![flow(0, 1, MSS), flow(1, 2, MSS)], &messages);
        let one = handshake() + packet_time();
        let arrives = us(50) + one;
        let k = u64::from(scale);
        assert_eq!(
            times(&mut world),
            [(at(us(50) * k), at(arrives * k)), (at(arrives * k), at((arrives + us(10) + one) * k))]
        );
        let flows = world.flows();
        assert_eq!((flows[0].start, flows[1].start), (at(us(50) * k), at((arrives + us(10)) * k)));
        assert_eq!(flows[1].finish, Some(at((arrives + us(10) + one) * k)));
    }
}

#[test]
fn a_connection_stays_open_between_its_messages() {
    let mut messages = Messages::default();
    let first = messages.push(on(0, MSS, 0), &[]);
    // The reply connects when the request is there, behind the ACK of the request; a second exchange needs no
    // handshake.
    let reply = messages.push(on(1, MSS, 1), &[first]);
    let again = messages.push(MessageConfig { delay: us(30), ..on(0, MSS, 2) }, &[reply]);
    messages.push(MessageConfig { delay: us(30), ..on(1, MSS, 3) }, &[again]);
    let mut world = world(&star(2, None, None), vec![flow(0, 1, 2 * MSS), flow(1, 0, 2 * MSS)], &messages);
    let request = handshake() + packet_time();
    let reply = request + ACK + handshake() + packet_time();
    let again = reply + us(30) + packet_time();
    let last = again + us(30) + packet_time();
    let finishes: Vec<Time> = times(&mut world).iter().map(|job| job.1).collect();
    assert_eq!(finishes, [request, reply, again, last].map(at));
    world.run_until(at(Span::from_ms(100)));
    assert_eq!((world.flows()[0].bytes_acked, world.fabric().totals().held), (2 * MSS, 0), "closed and quiet");
}

/// The second hop sends a chunk while the first sends the next one: all takes one chunk's time more than one hop.
#[test]
fn a_pipeline_takes_a_chunk_more_than_one_hop() {
    const CHUNKS: u64 = 50;
    let bytes = 8 * MSS;
    let mut messages = Messages::default();
    for _ in 0..CHUNKS {
        let first = messages.push(on(0, bytes, 0), &[]);
        messages.push(on(1, bytes, 0), &[first]);
    }
    let hops = vec![flow(0, 1, CHUNKS * bytes), flow(1, 2, CHUNKS * bytes)];
    let mut world = world(&star(3, None, None), hops, &messages);
    let took = times(&mut world)[0].1 - Time::ZERO;
    let chunk = ns(7200) * 8;
    // Each hop adds its handshake and its second link; a packet more where the window that a SYN offers ends, and what
    // ACKs take.
    let least = chunk * (CHUNKS + 1);
    assert!(took > least && took < least + (handshake() + ns(7200) * 2 + us(2)) * 2, "{took} and {least}");
    assert_eq!(world.jobs()[0].bytes, Bytes::new(2 * CHUNKS * bytes));
}

#[test]
fn what_takes_no_network_takes_its_delay() {
    let mut messages = Messages::default();
    let local = |delay, job| MessageConfig { delay, job, ..MessageConfig::default() };
    let work = messages.push(MessageConfig { start: us(3), ..local(us(5), 0) }, &[]);
    let sent = messages.push(on(0, MSS, 1), &[]);
    let both = messages.push(local(Span::ZERO, 2), &[work, sent]);
    messages.push(MessageConfig { start: us(90), ..local(us(1), 3) }, &[both]);
    let mut world = world(&star(2, None, None), vec![flow(0, 1, MSS)], &messages);
    let arrives = handshake() + packet_time();
    let expected = [(us(3), us(8)), (Span::ZERO, arrives), (arrives, arrives), (us(90), us(91))];
    assert_eq!(times(&mut world), expected.map(|(start, finish)| (at(start), at(finish))));
    assert_eq!(world.now(), at(us(91)), "a computation is waited for");
}

#[test]
fn wrong_messages_are_refused() {
    let error = |flows: Vec<FlowConfig>, list: &[(MessageConfig, &[u32])]| {
        let mut messages = Messages::default();
        list.iter().for_each(|(message, after)| _ = messages.push(*message, after));
        let fabric = Fabric::graph(&star(2, None, None)).unwrap();
        World::with(fabric, flows, vec![], &messages, 1).err().expect("an error").to_string()
    };
    let one = || vec![flow(0, 1, 100)];
    assert_eq!(error(one(), &[(on(1, 100, 0), &[])]), "message 0: there is no flow 1");
    assert_eq!(error(one(), &[(on(0, 99, 0), &[])]), "flow 0: its size is not that of its messages, 99 B");
    let late = FlowConfig { start: us(1), ..flow(0, 1, 100) };
    let text = "flow 0: it has a start and messages, which decide when it connects: keep one";
    assert_eq!(error(vec![late], &[(on(0, 100, 0), &[])]), text);
}

/// A message: its flow if it has one, bytes, start, delay, and what it comes after.
type Asked = (Option<u32>, u64, u64, u64, Vec<prop::sample::Index>);

fn graph() -> impl Strategy<Value = Vec<Asked>> {
    let after = prop::collection::vec(any::<prop::sample::Index>(), 0..4);
    let start = prop_oneof![3 => Just(0u64), 1 => 0u64..500];
    let delay = prop_oneof![1 => Just(0u64), 1 => 0u64..200];
    let message = (prop::option::weighted(0.9, 0u32..12), 1u64..200_000, start, delay, after);
    prop::collection::vec(message, 1..60)
}

/// The graph, each message a job of its own, over the twelve pairs of four hosts.
fn build(asked: &[Asked]) -> (Messages, Vec<FlowConfig>, Vec<Vec<u32>>) {
    let mut messages = Messages::default();
    let mut sizes = [0u64; 12];
    let mut all = vec![];
    for (index, (on, bytes, start, delay, after)) in asked.iter().enumerate() {
        let mut others: Vec<u32> = after.iter().filter(|_| index > 0).map(|of| of.index(index) as u32).collect();
        others.dedup();
        let bytes = if on.is_some() { *bytes } else { 0 };
        on.iter().for_each(|flow| sizes[*flow as usize] += bytes);
        let message = MessageConfig {
            flow: *on,
            bytes: Bytes::new(bytes),
            start: us(*start),
            delay: us(*delay),
            job: index as u32,
            enough: None,
        };
        messages.push(message, &others);
        all.push(others);
    }
    let pairs = (0..4u16).flat_map(|src| (0..4u16).filter(move |dst| *dst != src).map(move |dst| (src, dst)));
    // A flow without messages sends on its own.
    let flows = pairs.zip(sizes).map(|((src, dst), size)| flow(src, dst, size.max(1))).collect();
    (messages, flows, all)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn any_graph_is_carried_out(
        asked in graph(), loss in prop_oneof![2 => Just(0.0), 1 => 0.0..0.05],
        scale in prop_oneof![Just(1u32), Just(20)],
        stops in prop::collection::vec(1u64..3000, 0..4),
    ) {
        let (messages, flows, after) = build(&asked);
        let interface = InterfaceConfig { loss, ..InterfaceConfig::default() };
        let config = GraphConfig { interface, time_scale: scale, ..star(4, Some(100), None) };
        let mut first = world(&config, flows.clone(), &messages);
        let done = times(&mut first);
        let k = u64::from(scale);
        for (index, ((start, finish), others)) in done.iter().zip(&after).enumerate() {
            let message = messages.list()[index];
            let ready = others.iter().map(|other| done[*other as usize].1).max().unwrap_or(Time::ZERO);
            prop_assert_eq!(*start, ready.max(at(message.start * k)), "message {} is ready", index);
            let due = *start + message.delay * k;
            if message.flow.is_some() {
                prop_assert!(*finish > due, "message {}: {} and {}", index, finish, due);
            } else {
                prop_assert_eq!(*finish, due, "message {}", index);
            }
        }
        flows_agree(&first, &messages, &done, k)?;
        // The same in slices.
        let mut second = world(&config, flows, &messages);
        let mut stops: Vec<Time> = stops.into_iter().map(|stop| at(us(stop) * k)).collect();
        stops.sort_unstable();
        stops.into_iter().for_each(|stop| second.run_until(stop));
        prop_assert_eq!(&times(&mut second), &done);
        let end = first.now().max(second.now());
        first.run_until(end);
        second.run_until(end);
        prop_assert_eq!(first.fabric().digest(), second.fabric().digest());
    }
}

/// Each flow connects with the first message that is due, sends them in the order in which they are due, and no more.
fn flows_agree(world: &World, messages: &Messages, done: &[(Time, Time)], k: u64) -> Result<(), TestCaseError> {
    for (number, flow) in world.flows().iter().enumerate() {
        let own = |index: &usize| messages.list()[*index].flow == Some(number as u32);
        let due = |index: usize| done[index].0 + messages.list()[index].delay * k;
        let mut order: Vec<usize> = (0..done.len()).filter(own).collect();
        order.sort_by_key(|index| (due(*index), *index));
        let Some(first) = order.first() else { continue };
        prop_assert_eq!(flow.start, due(*first));
        prop_assert!(order.windows(2).all(|pair| done[pair[0]].1 <= done[pair[1]].1), "flow {} in order", number);
        prop_assert_eq!(flow.finish, order.last().map(|last| done[*last].1));
        prop_assert_eq!(Some(Bytes::new(flow.bytes_received)), flow.size);
    }
    Ok(())
}

#[test]
fn jobs_add_up_and_tell_what_is_missing() {
    let mut messages = Messages::default();
    let first = messages.push(on(0, MSS, 0), &[]);
    messages.push(on(0, 2 * MSS, 0), &[first]);
    messages.push(MessageConfig { start: us(900), ..on(1, 5, 1) }, &[]);
    let mut world = world(&star(2, None, None), vec![flow(0, 1, 3 * MSS), flow(1, 0, 5)], &messages);
    world.run_until(at(us(800)));
    let finish = world.jobs()[0].finish;
    assert!(finish.is_some_and(|finish| finish > at(handshake() + packet_time() * 2)));
    let job = JobReport { start: Some(Time::ZERO), finish, bytes: Bytes::new(3 * MSS), messages: 2 };
    let none = JobReport { start: None, finish: None, bytes: Bytes::new(5), messages: 1 };
    assert_eq!(world.jobs(), [job, none]);
    assert_eq!((world.unfinished(), world.is_finished(), world.flows()[1].start), (1, false, Time::MAX));
}

/// A program with the ends of external flows: a message engine, a clock of whole nanoseconds, and messages that take
/// time.
struct MessageProgram {
    engine: MessageEngine,
    /// The next message: its time, its position among those sent, and its flow.
    coming: BTreeSet<(u64, usize, usize)>,
    /// When the latest message of each flow comes, and when it sent its first.
    last: [u64; 12],
    first: [Option<u64>; 12],
    sent: usize,
    transits: Vec<u64>,
}

impl MessageProgram {
    fn deal_out(&mut self, now: u64) {
        while let Some((flow, _)) = self.engine.poll(at(ns(now))) {
            let comes = self.last[flow].max(now + self.transits[self.sent % self.transits.len()]);
            self.coming.insert((comes, self.sent, flow));
            self.last[flow] = comes;
            self.first[flow].get_or_insert(now);
            self.sent += 1;
        }
    }

    /// One message comes, or the clock reaches what is due; of both at once the first if `eager`. Returns when.
    fn step(&mut self, world: &mut World, eager: bool) -> u64 {
        let due = self.engine.next().map_or(u64::MAX, nanoseconds);
        let (comes, flow) = self.coming.first().map_or((u64::MAX, None), |(at, _, flow)| (*at, Some(*flow)));
        let now = due.min(comes);
        self.deal_out(now);
        if comes < due || (comes == due && eager) {
            self.coming.pop_first();
            world.run_until(at(ns(now)));
            assert!(world.complete_message(flow.unwrap()), "it is on its way there too");
            self.engine.on_complete(flow.unwrap(), at(ns(now)));
            self.deal_out(now);
        }
        now
    }
}

/// Rounded up.
fn nanoseconds(at: Time) -> u64 {
    at.as_ps().div_ceil(1000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A world learns of external messages only that they are complete, and agrees with their program's message engine.
    #[test]
    fn message_engines_of_world_and_program_agree(
        asked in graph(), transits in prop::collection::vec(1u64..300_000, 1..20), eager in any::<u64>(),
    ) {
        let (rounded, mut flows, after) = build(&asked);
        let mut messages = Messages::default();
        for (index, (message, others)) in rounded.list().iter().zip(&after).enumerate() {
            let odd = Span::from_ps(index as u64 * 337 % 1500);
            let (start, delay) = (message.start + odd, message.delay + odd);
            messages.push(MessageConfig { start, delay, ..*message }, others);
        }
        flows.iter_mut().for_each(|flow| flow.external = true);
        let mut world = world(&star(4, None, None), flows, &messages);
        let engine = MessageEngine::new(&messages, 12, 1);
        let mut program =
            MessageProgram { engine, coming: BTreeSet::new(), last: [0; 12], first: [None; 12], sent: 0, transits };
        let (mut now, mut steps) = (0, 0);
        while !program.engine.is_over() {
            now = program.step(&mut world, eager >> (steps % 64) & 1 == 1);
            steps += 1;
        }
        world.run_until(at(ns(now)));
        prop_assert_eq!(world.jobs(), program.engine.jobs());
        for (number, (flow, first)) in world.flows().iter().zip(program.first).enumerate() {
            let carries = messages.list().iter().any(|message| message.flow == Some(number as u32));
            prop_assert_eq!(carries.then(|| nanoseconds(flow.start)), first);
            prop_assert_eq!(flow.finish.is_some(), carries);
        }
        prop_assert!((0..12).all(|flow| !world.complete_message(flow)), "nothing is left");
    }
}
