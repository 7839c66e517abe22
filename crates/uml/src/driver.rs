//! Steps a world with the packets of a kernel's hosts.
//!
//! The kernel owns the clock: it counts nanoseconds, the engine picoseconds from the moment of [`Driver::start`] on. It
//! calls [`Driver::run`] at [`Driver::next`] and hands in frames with [`Driver::send`]; what becomes of each frame it
//! learns through [`Kernel`]: at most once that it was sent, and then exactly once that it was delivered or dropped. A
//! moment between two nanoseconds counts as the later one. A device whose interface is full waits for its turn. The warm-up ends
//! and the run ends at their exact picosecond.

use crate::wire::{Addresses, Refusal, read};
use firstlight_linux::Frames;
use firstlight_net::{Ecn, HostId, Packet, PacketId, TcpFlags};
use firstlight_sim::{Connection, FlowReport, Outside, World};
use firstlight_units::{Span, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::num::NonZeroUsize;

/// A kernel's own name for one of its packets: an address.
pub type Cookie = NonZeroUsize;

/// IP: congestion experienced.
pub const CE: u32 = 1;
/// TCP: ECN-Echo.
pub const ECE: u32 = 2;

/// What a kernel does with its packets.
pub trait Kernel {
    /// The packet arrives at a device; the fabric has made these marks on it.
    fn deliver(&mut self, device: u32, packet: Cookie, marks: u32);

    /// The packet is lost.
    fn drop(&mut self, packet: Cookie);

    /// The packet's last bit has left its device, whatever stood in its way. It is still in the network.
    fn sent(&mut self, packet: Cookie);

    /// A device that was to wait may send again.
    fn room(&mut self, device: u32);
}

/// One of the kernel's hosts, in the order of its devices.
#[derive(Clone, Copy, Debug)]
pub struct Device {
    /// Its number in the fabric.
    pub host: HostId,
    /// Its address.
    pub address: Ipv4Addr,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Waiting,
    /// Since this nanosecond of the kernel's clock.
    Running(u64),
    Over,
}

/// A world with a kernel at its edge.
pub struct Driver<K> {
    world: World,
    edge: Edge<K>,
    devices: Vec<HostId>,
    addresses: Addresses,
    /// Packets whose last bit has not left their device yet, by time and then in their order, where the fabric knows that time
    /// before.
    departures: BinaryHeap<Reverse<(Time, u64, Cookie)>>,
    phase: Phase,
    /// When the measurement begins.
    warmup: Time,
    end: Time,
    /// The flows when it began.
    warm: Option<Vec<FlowReport>>,
}

/// The packets that are in the fabric, and whom to tell.
struct Edge<K> {
    kernel: K,
    /// By packet.
    held: Vec<Option<Held>>,
    /// Device of each host that is the kernel's.
    device: Vec<u32>,
    frames: Frames,
}

/// A packet in the fabric.
#[derive(Clone, Copy)]
struct Held {
    cookie: Cookie,
    /// Marks that it may still get: those that it did not bring along.
    open: u32,
}

impl<K: Kernel> Driver<K> {
    /// `warmup` and `end` are in the fabric's own time.
    ///
    /// # Panics
    /// When a device's host is none of the fabric's.
    pub fn new(mut world: World, kernel: K, devices: &[Device], warmup: Span, end: Span) -> Self {
        let fabric = world.fabric_mut();
        fabric.keep_drops();
        fabric.keep_sent();
        let mut device = vec![u32::MAX; fabric.hosts()];
        for (index, one) in devices.iter().enumerate() {
            device[one.host.index()] = index as u32;
        }
        let (warmup, end) = (fabric.at(warmup), fabric.at(end));
        Driver {
            world,
            edge: Edge { kernel, held: vec![], device, frames: Frames::default() },
            devices: devices.iter().map(|device| device.host).collect(),
            addresses: Addresses::new(devices.iter().map(|device| (device.address, device.host))),
            departures: BinaryHeap::new(),
            phase: Phase::Waiting,
            warmup,
            end,
            warm: None,
        }
    }

    /// The fabric's time begins at `now`; false when it has begun before.
    pub fn start(&mut self, now: u64) -> bool {
        let waiting = self.phase == Phase::Waiting;
        if waiting {
            self.phase = Phase::Running(now);
        }
        waiting
    }

    /// When to call [`Driver::run`] next; `None` for never. It changes by calls that change something only.
    #[inline]
    pub fn next(&self) -> Option<u64> {
        let Phase::Running(zero) = self.phase else { return None };
        let stop = if self.warm.is_none() { self.warmup } else { self.end };
        let departure = self.departures.peek().map_or(stop, |first| first.0.0);
        let at = self.world.next().map_or(stop, |at| at.min(stop)).min(departure);
        Some(zero + at.as_ps().div_ceil(1000))
    }

    /// Does all that is due up to `now`.
    ///
    /// # Panics
    /// When the clock goes back to before the start.
    #[inline]
    pub fn run(&mut self, now: u64) {
        let Phase::Running(zero) = self.phase else { return };
        let now = Time::from_ps((now - zero) * 1000);
        if self.warm.is_none() && now >= self.warmup {
            self.begin_measuring(self.warmup);
        }
        if now >= self.end {
            self.advance(self.end);
            return self.freeze();
        }
        self.advance(now);
    }

    #[cold]
    fn begin_measuring(&mut self, at: Time) {
        self.advance(at);
        self.world.fabric_mut().reset_meter();
        self.warm = Some(self.world.flows());
    }

    #[inline]
    fn advance(&mut self, until: Time) {
        while let Some(&Reverse((at, _, cookie))) = self.departures.peek()
            && at <= until
        {
            self.departures.pop();
            self.edge.kernel.sent(cookie);
        }
        self.world.run(until, &mut self.edge);
    }

    /// Nothing moves from now on. What is still inside goes back to the kernel.
    #[cold]
    fn freeze(&mut self) {
        self.phase = Phase::Over;
        self.departures.clear();
        for held in std::mem::take(&mut self.edge.held).into_iter().flatten() {
            self.edge.frames.held += 1;
            self.edge.kernel.drop(held.cookie);
        }
    }

    /// A device sends a frame of `length` bytes, whose headers lie in `frame`. False when it is to wait with the next one until
    /// [`Kernel::room`]; what it sends before that is taken all the same.
    ///
    /// # Panics
    /// When there is no such device, or the clock goes back.
    #[inline]
    pub fn send(&mut self, device: u32, cookie: Cookie, frame: &[u8], length: usize, now: u64) -> bool {
        self.run(now);
        let frames = &mut self.edge.frames;
        frames.sent += 1;
        let refused = match self.phase {
            Phase::Waiting => &mut frames.early,
            Phase::Over => &mut frames.late,
            Phase::Running(_) => {
                let host = self.devices[device as usize];
                match read(frame, length, host, &self.addresses) {
                    Ok(packet) => return self.enter(host, cookie, packet),
                    Err(Refusal::NotIpv4) => &mut frames.not_ipv4,
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
    fn enter(&mut self, host: HostId, cookie: Cookie, packet: Packet) -> bool {
        let Some(id) = self.world.inject(host, packet) else {
            self.edge.frames.dropped += 1;
            self.edge.kernel.drop(cookie);
            return true;
        };
        let ce = if packet.ecn == Ecn::Ce { 0 } else { CE };
        let ece = if packet.flags.has(TcpFlags::ECE) || !packet.is_tcp() { 0 } else { ECE };
        let held = &mut self.edge.held;
        if held.len() <= id.index() {
            held.resize(id.index() + 1, None);
        }
        held[id.index()] = Some(Held { cookie, open: ce | ece });
        if let Some(at) = self.world.fabric().departure(host) {
            self.departures.push(Reverse((at, self.edge.frames.sent, cookie)));
        }
        self.world.ask_room(host)
    }

    /// A program begins to write so many bytes to its connection (sender, receiver), the next of which will have this
    /// sequence number; or it ends having written fewer than it began to, by so many below 0.
    ///
    /// # Panics
    /// Where nobody asks what is written ([`firstlight_sim::Fabric::hears_writes`]); so does [`Driver::closed`].
    pub fn wrote(&mut self, ends: [SocketAddrV4; 2], sequence: u32, bytes: i64) {
        if let Some(connection) = self.connection(ends) {
            self.world.fabric_mut().on_program_write(connection, sequence, bytes);
        }
    }

    /// A program's connection is over: what it has not sent will never be.
    pub fn closed(&mut self, ends: [SocketAddrV4; 2]) {
        if let Some(connection) = self.connection(ends) {
            self.world.fabric_mut().on_program_close(connection);
        }
    }

    /// None when an end is none of the hosts': it listens, or talks to itself.
    fn connection(&self, ends: [SocketAddrV4; 2]) -> Option<Connection> {
        let [src, dst] = ends.map(|end| self.addresses.host(end.ip().to_bits()));
        Some(Connection { src: src?, sport: ends[0].port(), dst: dst?, dport: ends[1].port() })
    }

    /// The run ends at `now`, if it has not ended before.
    pub fn finish(&mut self, now: u64) {
        self.run(now);
        if self.warm.is_none() {
            self.begin_measuring(self.world.now());
        }
        if self.phase != Phase::Over {
            self.freeze();
        }
    }

    /// How long the hosts' clock has run since the start, at `now`.
    pub fn elapsed(&self, now: u64) -> u64 {
        match self.phase {
            Phase::Waiting => 0,
            Phase::Running(zero) => now.saturating_sub(zero),
            Phase::Over => self.world.now().as_ps().div_ceil(1000),
        }
    }

    /// Whether the fabric's time has begun and not ended.
    pub fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running(_))
    }

    /// The world.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The world, for what hosts tell of their flows.
    pub fn world_mut(&mut self) -> &mut World {
        &mut self.world
    }

    /// The flows when the measurement began.
    pub fn warm(&self) -> Option<&[FlowReport]> {
        self.warm.as_deref()
    }

    /// The same, for what hosts tell of their flows at that moment.
    pub fn warm_mut(&mut self) -> Option<&mut [FlowReport]> {
        self.warm.as_deref_mut()
    }

    /// The kernel.
    pub fn kernel(&mut self) -> &mut K {
        &mut self.edge.kernel
    }

    /// What became of the frames.
    pub fn frames(&self) -> Frames {
        self.edge.frames
    }
}

impl<K: Kernel> Edge<K> {
    #[inline]
    fn take(&mut self, id: PacketId) -> Option<Held> {
        self.held.get_mut(id.index()).and_then(Option::take)
    }
}

impl<K: Kernel> Outside for Edge<K> {
    const PRESENT: bool = true;

    #[inline]
    fn on_exit(&mut self, id: PacketId, packet: &Packet, host: HostId) -> bool {
        let Some(held) = self.take(id) else { return false };
        let ce = if packet.ecn == Ecn::Ce { CE } else { 0 };
        let ece = if packet.flags.has(TcpFlags::ECE) { ECE } else { 0 };
        self.frames.delivered += 1;
        self.kernel.deliver(self.device[host.index()], held.cookie, (ce | ece) & held.open);
        true
    }

    fn on_sent(&mut self, id: PacketId) {
        if let Some(Some(held)) = self.held.get(id.index()) {
            self.kernel.sent(held.cookie);
        }
    }

    fn on_room(&mut self, host: HostId) {
        self.kernel.room(self.device[host.index()]);
    }

    fn on_drop(&mut self, id: PacketId) {
        // A simulated packet has no cookie; neither has one that was lost as it was handed in.
        if let Some(held) = self.take(id) {
            self.frames.dropped += 1;
            self.kernel.drop(held.cookie);
        }
    }
}
