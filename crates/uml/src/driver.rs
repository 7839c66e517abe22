//! Steps a world with the packets of a kernel's hosts.
//!
//! The kernel owns the clock and counts nanoseconds; the engine counts picoseconds since [`KernelDriver::start`]. The
//! kernel calls [`KernelDriver::run`] at [`KernelDriver::next`] and hands in frames by [`KernelDriver::send`]. The
//! driver reports each frame through [`KernelCalls`]: at most once that it was sent, and then exactly once that it was
//! delivered or dropped. The kernel reads the next whole nanosecond of its clock then, and what it does within that
//! nanosecond happens at the exact picosecond of the report before: hosts act as promptly as simulated ones do, and
//! their packets meet in the fabric in the same order. A device whose interface is full waits for its turn. The warm-up
//! and the run end at their exact picosecond.

use crate::frame::{HostAddresses, Refusal, read_frame};
use firstlight_lab::Fidelity;
use firstlight_lab::spec::EctSyn;
use firstlight_linux::{Frames, Processors};
use firstlight_net::{Ecn, FlowTuple, HostId, Packet, PacketId, Stamps, TcpFlags, TcpSegment};
use firstlight_sim::{ExternalHosts, FlowReport, World};
use firstlight_units::{Span, Time};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::num::NonZeroUsize;

/// The kernel's name for one of its packets: an address.
pub type Cookie = NonZeroUsize;

/// Mark for IP: congestion experienced.
pub const CE: u32 = 1;
/// Mark for TCP: ECN-Echo.
pub const ECE: u32 = 2;
/// The protocol number of UDP.
const UDP: u8 = 17;

/// The functions of a kernel that the driver calls.
pub trait KernelCalls {
    /// The packet is about to arrive, and carries timestamps of the interfaces: when it left its sender's and came to
    /// its receiver's.
    fn stamp(&mut self, _packet: Cookie, _sent: u32, _received: u32) {}

    /// The packet arrives at a device. The fabric has made these marks on it.
    fn deliver(&mut self, device: u32, packet: Cookie, marks: u32);

    /// The packet is lost.
    fn drop(&mut self, packet: Cookie);

    /// The packet's last bit has left its device. The packet is still in the network.
    fn sent(&mut self, packet: Cookie);

    /// A device whose interface was full may send again.
    fn room(&mut self, device: u32);

    /// The counters of the processors of a device's host. Only a kernel whose hosts have processors is asked.
    fn processors(&mut self, _device: u32) -> Processors {
        Processors::default()
    }

    /// How closely the run followed the clock, for a kernel in dilated time.
    fn fidelity(&mut self) -> Option<Fidelity> {
        None
    }
}

/// A host of the kernel.
#[derive(Clone, Copy, Debug)]
pub struct Device {
    /// Number of the host in the fabric.
    pub host: HostId,
    /// Address of the host.
    pub address: Ipv4Addr,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RunPhase {
    Waiting,
    /// The run has begun at this nanosecond of the kernel's clock.
    Running(u64),
    Over,
}

/// A world with the hosts of a kernel at its edge.
pub struct KernelDriver<K> {
    world: World,
    edge: KernelEdge<K>,
    devices: Vec<HostId>,
    addresses: HostAddresses,
    /// Packets that have not left their device, by the time at which their last bit leaves and then by order, where the
    /// fabric knows this time in advance.
    departures: BinaryHeap<Reverse<(Time, u64, PacketId)>>,
    phase: RunPhase,
    /// When the measurement begins.
    warmup: Time,
    end: Time,
    /// The flows when the measurement began.
    warm: Option<Vec<FlowReport>>,
    /// Which packets of handshakes stay ECN-capable; `None`: those that the kernel makes so.
    ect_syn: Option<EctSyn>,
    /// Sockets count packets of TCP until these leave their device.
    small_queues: bool,
    /// Traffic classes of programs' connections; `None`: those that their packets have.
    programs: Option<ProgramClasses>,
    /// The probes that hosts of the kernel send, by their hosts and ports.
    probes: BTreeMap<FlowTuple, usize>,
    /// A number for each host; packets cannot pass between hosts of different numbers. Empty where all hosts are
    /// connected.
    islands: Vec<u32>,
}

/// Traffic classes that hosts give to connections of programs.
struct ProgramClasses {
    /// The class of each device's connections.
    of_device: Vec<u8>,
    /// Both directions of the connections of flows, which have classes of their own.
    flows: BTreeSet<FlowTuple>,
}

/// The kernel, and its packets in the fabric.
struct KernelEdge<K> {
    kernel: K,
    /// The kernel's packets by their number in the fabric.
    held: Vec<Option<HeldPacket>>,
    /// Device of each host of the kernel, by host.
    device: Vec<u32>,
    frames: Frames,
    /// The kernel was called, and may act upon that.
    called: bool,
}

/// A packet of the kernel in the fabric.
#[derive(Clone, Copy)]
struct HeldPacket {
    cookie: Cookie,
    /// When the packet leaves its device; [`Time::MAX`] where that is not known, or past.
    leaves: Time,
    /// Marks that the fabric may make: those that the packet did not have when it was sent.
    open: u32,
    /// The packet's socket counts it until it leaves its device.
    counts: bool,
}

impl<K: KernelCalls> KernelDriver<K> {
    /// A driver for these devices of the kernel; `warmup` and `end` are in the fabric's own time.
    ///
    /// # Panics
    /// When a device names a host that the fabric does not have.
    pub fn new(mut world: World, kernel: K, devices: &[Device], warmup: Span, end: Span) -> Self {
        let fabric = world.fabric_mut();
        fabric.keep_drops();
        fabric.keep_sent();
        let mut device = vec![u32::MAX; fabric.hosts()];
        for (index, one) in devices.iter().enumerate() {
            device[one.host.index()] = index as u32;
        }
        let (warmup, end) = (fabric.at(warmup), fabric.at(end));
        let probes = world.external_probes().collect();
        KernelDriver {
            world,
            edge: KernelEdge { kernel, held: vec![], device, frames: Frames::default(), called: false },
            devices: devices.iter().map(|device| device.host).collect(),
            addresses: HostAddresses::new(devices.iter().map(|device| (device.address, device.host))),
            departures: BinaryHeap::new(),
            phase: RunPhase::Waiting,
            warmup,
            end,
            warm: None,
            ect_syn: None,
            small_queues: true,
            programs: None,
            probes,
            islands: vec![],
        }
    }

    /// From now on frames between hosts with different numbers, given for each host of the fabric, go nowhere.
    pub fn divide(&mut self, islands: Vec<u32>) {
        self.islands = islands;
    }

    /// From now on the fabric treats the SYNs and SYN-ACKs that `ect` excludes as not ECN-capable. The receiving kernel
    /// sees the ECN bits that the sending kernel wrote.
    pub fn restrict_ect_on_syn(&mut self, ect_syn: EctSyn) {
        self.ect_syn = Some(ect_syn);
    }

    /// From now on a packet of TCP counts for its socket only until a device takes it: what is in the interface holds
    /// nothing back.
    pub fn count_no_queues(&mut self) {
        self.small_queues = false;
    }

    /// From now on TCP of these devices, one class for each, has that traffic class in the fabric, except connections
    /// of flows and those that have a class already.
    pub fn classify_programs(&mut self, of_device: Vec<u8>) {
        let ends = |flow: &FlowReport| {
            let there = FlowTuple { src: flow.src, sport: flow.sport, dst: flow.dst, dport: flow.dport };
            [there, there.reversed()]
        };
        let flows = self.world.flows().iter().flat_map(ends).collect();
        self.programs = Some(ProgramClasses { of_device, flows });
    }

    /// Begins the fabric's time at `now`. Returns false when it has begun before.
    pub fn start(&mut self, now: u64) -> bool {
        let waiting = self.phase == RunPhase::Waiting;
        if waiting {
            self.phase = RunPhase::Running(now);
        }
        waiting
    }

    /// When to call [`KernelDriver::run`] next; `None` for never. Only calls with `&mut self` change it.
    #[inline]
    pub fn next(&self) -> Option<u64> {
        let RunPhase::Running(zero) = self.phase else { return None };
        let stop = if self.warm.is_none() { self.warmup } else { self.end };
        let departure = self.departures.peek().map_or(stop, |first| first.0.0);
        let at = self.world.next().map_or(stop, |at| at.min(stop)).min(departure);
        Some(zero + at.as_ps().div_ceil(1000))
    }

    /// Carries out the events that are due up to `now`; of those in the last nanosecond, the events of one moment.
    ///
    /// # Panics
    /// When `now` is before the start.
    pub fn run(&mut self, now: u64) {
        while let RunPhase::Running(zero) = self.phase {
            let until = Time::from_ps((now - zero) * 1000);
            let stop = if self.warm.is_none() { self.warmup } else { self.end };
            if !self.advance(until.min(stop)) || until < stop {
                return;
            }
            if self.warm.is_some() {
                return self.freeze();
            }
            self.begin_measuring();
        }
    }

    /// Carries out what is due up to `now`, as [`KernelDriver::run`] does. An engine that is already within the last
    /// nanosecond stays at its moment, and carries out what is due then.
    #[inline]
    pub fn catch_up(&mut self, now: u64) {
        let RunPhase::Running(zero) = self.phase else { return };
        if is_before(self.world.now(), Time::from_ps((now - zero) * 1000)) {
            self.run(now);
        } else {
            self.advance(self.world.now());
        }
    }

    #[cold]
    fn begin_measuring(&mut self) {
        self.world.fabric_mut().reset_meter();
        self.warm = Some(self.world.flows());
    }

    /// Goes on up to and at `until`, or to a moment in the nanosecond before it at which the kernel was called. Returns
    /// whether it is `until`.
    fn advance(&mut self, until: Time) -> bool {
        loop {
            self.edge.called = false;
            let departure = self.departures.peek().map_or(Time::MAX, |first| first.0.0);
            self.world.run(until.min(departure), &mut self.edge);
            let now = self.world.now();
            // Arrivals at the same moment come first, as with simulated hosts.
            while let Some(&Reverse((at, _, packet))) = self.departures.peek()
                && at <= now
            {
                self.departures.pop();
                self.edge.leave(packet, at);
            }
            if now >= until {
                return true;
            }
            if self.edge.called && !is_before(now, until) {
                return false;
            }
        }
    }

    /// Ends the run. Packets inside the fabric go back to the kernel as dropped.
    #[cold]
    fn freeze(&mut self) {
        self.phase = RunPhase::Over;
        self.departures.clear();
        for held in std::mem::take(&mut self.edge.held).into_iter().flatten() {
            self.edge.frames.held += 1;
            self.edge.kernel.drop(held.cookie);
        }
    }

    /// A device sends a frame of `length` bytes, whose headers lie in `frame`. Returns false when the device has to
    /// wait for [`KernelCalls::room`] before the next frame; a frame that it sends earlier is not refused.
    ///
    /// # Panics
    /// When there is no such device, or `now` is before the start.
    #[inline]
    pub fn send(&mut self, device: u32, cookie: Cookie, frame: &[u8], length: usize, now: u64) -> bool {
        self.catch_up(now);
        let frames = &mut self.edge.frames;
        frames.sent += 1;
        let refused = match self.phase {
            RunPhase::Waiting => &mut frames.early,
            RunPhase::Over => &mut frames.late,
            RunPhase::Running(_) => {
                let host = self.devices[device as usize];
                match read_frame(frame, length, host, &self.addresses) {
                    Ok(packet) if is_divided(&self.islands, &packet) => &mut frames.elsewhere,
                    Ok(mut packet) => {
                        if let Some(programs) = &self.programs {
                            programs.classify(device, &mut packet);
                        }
                        if let Some(number) = probe_of(&self.probes, &packet) {
                            packet = self.world.take_probe(number, &packet);
                        }
                        return self.enter(host, cookie, packet);
                    }
                    Err(Refusal::NotIp) => &mut frames.not_ip,
                    Err(Refusal::Malformed) => &mut frames.malformed,
                    Err(Refusal::Elsewhere) => &mut frames.elsewhere,
                }
            }
        };
        *refused += 1;
        self.edge.kernel.drop(cookie);
        true
    }

    #[inline]
    fn enter(&mut self, host: HostId, cookie: Cookie, mut packet: Packet) -> bool {
        if self.ect_syn.is_some_and(|ect_syn| is_excluded(&packet, ect_syn)) {
            packet.set_ecn(Ecn::NotEct);
        }
        let Some(id) = self.world.inject(host, packet) else {
            self.edge.frames.dropped += 1;
            self.edge.kernel.drop(cookie);
            return true;
        };
        let ce = if packet.ecn() == Ecn::Ce { 0 } else { CE };
        let ece = if packet.tcp().is_none_or(echoes) { 0 } else { ECE };
        let held = &mut self.edge.held;
        if held.len() <= id.index() {
            held.resize(id.index() + 1, None);
        }
        let counts = self.small_queues || packet.tcp().is_none();
        let leaves = self.world.fabric().departure(host).filter(|_| counts);
        held[id.index()] = Some(HeldPacket { cookie, leaves: leaves.unwrap_or(Time::MAX), open: ce | ece, counts });
        if let Some(at) = leaves {
            self.departures.push(Reverse((at, self.edge.frames.sent, id)));
        } else if !counts {
            self.edge.kernel.sent(cookie);
        }
        self.world.ask_room(host)
    }

    /// A program begins to write `bytes` to its connection (sender, receiver); the next byte will have this sequence
    /// number. A negative number ends a write that was shorter than announced, by that number of bytes.
    ///
    /// # Panics
    /// Where writes need not be reported ([`World::records_writes`]).
    pub fn wrote(&mut self, ends: [SocketAddrV4; 2], sequence: u32, bytes: i64) {
        if let Some(connection) = self.connection(ends) {
            self.world.on_program_write(connection, sequence, bytes);
        }
    }

    /// A program's connection is closed: bytes that it has not sent never will be.
    ///
    /// # Panics
    /// As [`KernelDriver::wrote`].
    pub fn closed(&mut self, ends: [SocketAddrV4; 2]) {
        if let Some(connection) = self.connection(ends) {
            self.world.on_program_close(connection);
        }
    }

    /// `None` when an end has the address of no host: a listening socket, or a connection of a host with itself.
    fn connection(&self, ends: [SocketAddrV4; 2]) -> Option<FlowTuple> {
        let [src, dst] = ends.map(|end| self.addresses.host(end.ip().to_bits()));
        Some(FlowTuple { src: src?, sport: ends[0].port(), dst: dst?, dport: ends[1].port() })
    }

    /// Ends the run at `now`, if it has not ended before.
    pub fn finish(&mut self, now: u64) {
        while self.next().is_some_and(|next| next <= now) {
            self.run(now);
        }
        self.run(now);
        if self.warm.is_none() {
            self.begin_measuring();
        }
        if self.phase != RunPhase::Over {
            self.freeze();
        }
    }

    /// Nanoseconds on the hosts' clock since the start, at `now`.
    pub fn elapsed(&self, now: u64) -> u64 {
        match self.phase {
            RunPhase::Waiting => 0,
            RunPhase::Running(zero) => now.saturating_sub(zero),
            RunPhase::Over => self.world.now().as_ps().div_ceil(1000),
        }
    }

    /// Whether the run has begun and not ended.
    pub fn is_running(&self) -> bool {
        matches!(self.phase, RunPhase::Running(_))
    }

    /// The world of this run.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The world of this run, to set what hosts report of their flows.
    pub fn world_mut(&mut self) -> &mut World {
        &mut self.world
    }

    /// The flows when the measurement began; `None` before.
    pub fn warm(&self) -> Option<&[FlowReport]> {
        self.warm.as_deref()
    }

    /// The flows at the beginning of the measurement, to set what hosts report of them.
    pub fn warm_mut(&mut self) -> Option<&mut [FlowReport]> {
        self.warm.as_deref_mut()
    }

    /// The kernel whose hosts these are.
    pub fn kernel(&mut self) -> &mut K {
        &mut self.edge.kernel
    }

    /// The counts of frames: delivered, dropped, and why.
    pub fn frames(&self) -> Frames {
        self.edge.frames
    }
}

#[inline]
fn is_divided(islands: &[u32], packet: &Packet) -> bool {
    !islands.is_empty() && islands[packet.src().index()] != islands[packet.dst().index()]
}

/// The number of the probe that a packet is a datagram of.
#[inline]
fn probe_of(probes: &BTreeMap<FlowTuple, usize>, packet: &Packet) -> Option<usize> {
    if probes.is_empty() || packet.protocol() != UDP || packet.is_ipv6() {
        return None;
    }
    probes.get(&packet.tuple()).copied()
}

/// Whether `at` lies a nanosecond or more before `now`.
#[inline]
fn is_before(at: Time, now: Time) -> bool {
    now.saturating_since(at) >= Span::from_ns(1)
}

impl ProgramClasses {
    fn classify(&self, device: u32, packet: &mut Packet) {
        let class = self.of_device[device as usize];
        if class != 0 && packet.class() == 0 && packet.tcp().is_some() && !self.flows.contains(&packet.tuple()) {
            packet.set_class(class);
        }
    }
}

/// Whether a packet is one of a handshake that is not to be ECN-capable.
fn is_excluded(packet: &Packet, ect_syn: EctSyn) -> bool {
    let Some(flags) = packet.tcp().map(|segment| segment.flags()).filter(|flags| flags.has(TcpFlags::SYN)) else {
        return false;
    };
    match ect_syn {
        EctSyn::None => true,
        EctSyn::SynAck => !flags.has(TcpFlags::ACK),
        EctSyn::Both => false,
    }
}

/// Whether a segment has ECN-Echo set.
fn echoes(segment: TcpSegment<'_>) -> bool {
    segment.flags().has(TcpFlags::ECE)
}

impl<K: KernelCalls> KernelEdge<K> {
    #[inline]
    fn take(&mut self, id: PacketId) -> Option<HeldPacket> {
        let held = self.held.get_mut(id.index()).and_then(Option::take)?;
        if held.leaves < Time::MAX {
            // The packet leaves at this moment, or never.
            self.call().sent(held.cookie);
        }
        Some(held)
    }

    /// A packet that is to leave `at` some time has left.
    #[inline]
    fn leave(&mut self, id: PacketId, at: Time) {
        if let Some(Some(held)) = self.held.get_mut(id.index())
            && held.leaves == at
        {
            held.leaves = Time::MAX;
            let cookie = held.cookie;
            self.call().sent(cookie);
        }
    }

    /// The kernel, which is about to be called.
    #[inline]
    fn call(&mut self) -> &mut K {
        self.called = true;
        &mut self.kernel
    }
}

impl<K: KernelCalls> ExternalHosts for KernelEdge<K> {
    const PRESENT: bool = true;

    #[inline]
    fn on_exit(&mut self, id: PacketId, packet: &Packet, host: HostId) -> bool {
        let Some(held) = self.take(id) else { return false };
        let ce = if packet.ecn() == Ecn::Ce { CE } else { 0 };
        let ece = if packet.tcp().is_some_and(echoes) { ECE } else { 0 };
        self.frames.delivered += 1;
        let device = self.device[host.index()];
        // Of a datagram the interfaces keep their timestamps: no option of its header carries them.
        if packet.has_stamps() && packet.tcp().is_some() {
            let Stamps { sent, received, .. } = packet.stamps();
            self.call().stamp(held.cookie, sent, received);
        }
        self.call().deliver(device, held.cookie, (ce | ece) & held.open);
        true
    }

    fn on_sent(&mut self, id: PacketId) {
        if let Some(Some(held)) = self.held.get(id.index())
            && held.counts
        {
            let cookie = held.cookie;
            self.call().sent(cookie);
        }
    }

    fn on_room(&mut self, host: HostId) {
        let device = self.device[host.index()];
        self.call().room(device);
    }

    fn on_drop(&mut self, id: PacketId) {
        // A simulated packet has no cookie; a packet that was lost when it was handed in has none either.
        if let Some(held) = self.take(id) {
            self.frames.dropped += 1;
            self.call().drop(held.cookie);
        }
    }

    #[inline]
    fn acts(&self) -> bool {
        self.called
    }
}
