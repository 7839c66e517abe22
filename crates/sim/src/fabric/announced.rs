//! What the hosts of a hybrid fabric have said that they have to send, and how much of it has passed the VOQ: demand by
//! application data units (the slides of Etalon's first version, demand estimation).
//!
//! Each write is told as it happens. A VOQ sees how far each flow has come by the sequence numbers of the packets that leave
//! it, so that what is sent twice counts once. Bytes are the applications': headers come on top.
//!
//! Besides the world's flows there may be connections that programs on hosts outside have opened. They are known from
//! their first write on, and forgotten when they end.

use super::core::Core;
use super::hybrid::Hybrid;
use crate::FIRST_PORT;
use firstlight_circuits::{Demand, RackId};
use firstlight_net::{FlowTuple, HostId, Packet, PacketId, TcpFlags, TcpSegment};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The account of each pair of racks. Flows are known by the places of their senders.
pub(super) struct Announced {
    /// The first place of each host, and one past the last.
    first: Vec<u32>,
    flows: Vec<Sent>,
    /// FlowTuples of programs.
    programs: BTreeMap<FlowTuple, Written>,
    pairs: Vec<Account>,
}

/// How far a flow has come.
#[derive(Clone, Copy, Default)]
struct Sent {
    /// The sequence number after the last byte that has passed.
    passed: u32,
    /// It never ends: what passes is not taken from what was written.
    endless: bool,
}

/// How far a program's connection has come.
#[derive(Clone, Copy)]
struct Written {
    /// The sequence number after the last byte that has passed.
    passed: u32,
    /// Bytes written that have not passed.
    waiting: u64,
}

#[derive(Clone, Copy, Default)]
struct Account {
    /// Bytes written that have not passed.
    waiting: u64,
    /// Flows that never end.
    endless: u32,
}

impl Announced {
    pub(super) fn new(first: Vec<u32>, pairs: usize) -> Self {
        let places = first.last().map_or(0, |last| *last as usize);
        let (flows, programs) = (vec![Sent::default(); places], BTreeMap::new());
        Announced { first, flows, programs, pairs: vec![Account::default(); pairs] }
    }

    /// The place of the flow's end that has this port of a host, if it is one's.
    fn place(&self, host: HostId, port: u16) -> Option<usize> {
        let (first, end) = (self.first[host.index()] as usize, self.first[host.index() + 1] as usize);
        let place = first + usize::from(port.wrapping_sub(FIRST_PORT));
        (place < end).then_some(place)
    }

    fn write(&mut self, place: usize, pair: usize, bytes: Option<u64>) {
        let account = &mut self.pairs[pair];
        match bytes {
            Some(bytes) => account.waiting += bytes,
            None => account.endless += 1,
        }
        self.flows[place].endless = bytes.is_none();
    }

    fn on_passed(&mut self, pair: usize, packet: &Packet) {
        let Some(place) = self.place(packet.src(), packet.sport()) else {
            return self.on_program_passed(packet);
        };
        let Some(segment) = packet.tcp() else { return };
        let flow = &mut self.flows[place];
        if segment.flags().has(TcpFlags::SYN) {
            flow.passed = segment.seq().wrapping_add(segment.payload()).wrapping_add(1);
            return;
        }
        if let Some(new) = advance(&mut flow.passed, segment)
            && !flow.endless
        {
            let waiting = &mut self.pairs[pair].waiting;
            *waiting = waiting.saturating_sub(u64::from(new));
        }
    }

    fn on_program_passed(&mut self, packet: &Packet) {
        if self.programs.is_empty() {
            return;
        }
        let Some(segment) = packet.tcp() else { return };
        let Some(known) = self.programs.get_mut(&packet.tuple()) else { return };
        if let Some(new) = advance(&mut known.passed, segment) {
            known.waiting = known.waiting.saturating_sub(u64::from(new));
        }
    }

    /// So many bytes more are written, or fewer than was said. What flows write is told otherwise.
    fn on_program_write(&mut self, connection: FlowTuple, sequence: u32, bytes: i64) {
        let known = match self.programs.entry(connection) {
            Entry::Occupied(known) => known.into_mut(),
            // Before its first write none of its data has been sent.
            Entry::Vacant(new) if bytes > 0 => new.insert(Written { passed: sequence, waiting: 0 }),
            Entry::Vacant(_) => return,
        };
        known.waiting = known.waiting.saturating_add_signed(bytes);
    }
}

/// Takes note of a packet that passes; tells how many of its bytes had not passed before, if it has any beyond them.
fn advance(passed: &mut u32, segment: TcpSegment<'_>) -> Option<u32> {
    let end = segment.seq().wrapping_add(segment.payload());
    let new = end.wrapping_sub(*passed);
    let further = segment.payload() > 0 && new < 1 << 31;
    if further {
        *passed = end;
    }
    further.then_some(new)
}

impl Hybrid {
    /// A packet leaves its VOQ.
    #[inline]
    pub(super) fn on_passed(&mut self, core: &Core, id: PacketId, pair: usize) {
        if let Some(announced) = &mut self.announced {
            announced.on_passed(pair, core.arena.get(id));
        }
        if let Some(point) = self.points.voqs.get_mut(pair) {
            point.on_gone(core.arena.get(id));
        }
    }

    /// What hosts have written and has not passed; a flow that never ends has more than any number.
    pub(super) fn announced_demand(&self) -> Demand {
        let announced = self.announced.as_ref().expect("writes are told");
        let mut demand = Demand::zero(self.racks);
        for (pair, account) in announced.pairs.iter().enumerate() {
            let bytes = if account.endless > 0 { u64::MAX } else { account.waiting };
            demand.add(rack(pair / self.racks), rack(pair % self.racks), bytes);
        }
        for (connection, written) in &announced.programs {
            demand.add(rack(self.rack(connection.src)), rack(self.rack(connection.dst)), written.waiting);
        }
        demand
    }

    /// What waits in the VOQs.
    pub(super) fn voq_demand(&self, core: &Core) -> Demand {
        let mut demand = Demand::zero(self.racks);
        for (pair, state) in self.pairs.iter().enumerate() {
            let bytes = state.voq.iter().map(|id| u64::from(core.arena.get(id).size())).sum();
            demand.add(rack(pair / self.racks), rack(pair % self.racks), bytes);
        }
        demand
    }

    /// Something is written to the flow whose sender has this place; `None` when it never ends.
    pub(super) fn on_write(&mut self, place: usize, ends: [HostId; 2], bytes: Option<u64>) {
        let pair = self.pair(self.rack(ends[0]), self.rack(ends[1]));
        if let Some(announced) = &mut self.announced {
            announced.write(place, pair, bytes);
        }
    }

    /// A program writes so many bytes to its connection, or fewer than was said; they begin with this sequence number.
    pub(super) fn on_program_write(&mut self, connection: FlowTuple, sequence: u32, bytes: i64) {
        if let Some(announced) = &mut self.announced
            && announced.place(connection.src, connection.sport).is_none()
        {
            announced.on_program_write(connection, sequence, bytes);
        }
    }

    /// A program's connection is over: what it has not sent will not pass.
    pub(super) fn on_program_close(&mut self, connection: FlowTuple) {
        if let Some(announced) = &mut self.announced {
            announced.programs.remove(&connection);
        }
    }

    /// A flow between these hosts that was to go on for ever has ended.
    pub(super) fn on_end(&mut self, ends: [HostId; 2]) {
        let pair = self.pair(self.rack(ends[0]), self.rack(ends[1]));
        if let Some(announced) = &mut self.announced {
            announced.pairs[pair].endless -= 1;
        }
    }
}

fn rack(index: usize) -> RackId {
    RackId(index as u16)
}
