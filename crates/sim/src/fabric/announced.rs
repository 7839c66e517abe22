//! What the hosts of a hybrid fabric have said that they have to send, and how much of it has passed the VOQ: demand by
//! application data units (the slides of Etalon's first version, demand estimation).
//!
//! Each write is told as it happens. A VOQ sees how far each flow has come by the sequence numbers of the packets that leave
//! it, so that what is sent twice counts once. Bytes are the applications': headers come on top.

use super::core::Core;
use super::hybrid::Hybrid;
use crate::FIRST_PORT;
use firstlight_circuits::{Demand, RackId};
use firstlight_net::{HostId, Packet, PacketId, TcpFlags};

/// The account of each pair of racks. Flows are known by the places of their senders.
pub(super) struct Announced {
    /// The first place of each host, and one past the last.
    first: Vec<u32>,
    flows: Vec<Sent>,
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
        Announced { first, flows: vec![Sent::default(); places], pairs: vec![Account::default(); pairs] }
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
        let host = packet.src.index();
        let place = self.first[host] as usize + usize::from(packet.sport.wrapping_sub(FIRST_PORT));
        if place >= self.first[host + 1] as usize {
            return;
        }
        let flow = &mut self.flows[place];
        let end = packet.seq.wrapping_add(packet.payload());
        if packet.flags.has(TcpFlags::SYN) {
            flow.passed = end.wrapping_add(1);
            return;
        }
        let new = end.wrapping_sub(flow.passed);
        if packet.payload() > 0 && new < 1 << 31 {
            flow.passed = end;
            if flow.endless {
                return;
            }
            let waiting = &mut self.pairs[pair].waiting;
            *waiting = waiting.saturating_sub(u64::from(new));
        }
    }
}

impl Hybrid {
    /// A packet leaves its VOQ.
    #[inline]
    pub(super) fn on_passed(&mut self, core: &Core, id: PacketId, pair: usize) {
        if let Some(announced) = &mut self.announced {
            announced.on_passed(pair, core.arena.get(id));
        }
        if let Some(point) = self.points.get_mut(pair) {
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
        demand
    }

    /// What waits in the VOQs.
    pub(super) fn voq_demand(&self, core: &Core) -> Demand {
        let mut demand = Demand::zero(self.racks);
        for (pair, state) in self.pairs.iter().enumerate() {
            let bytes = state.voq.iter().map(|id| u64::from(core.arena.get(id).size)).sum();
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
