//! The ADU backlog: how much the hosts of a hybrid fabric have written, and how much of it has passed the VOQs. It is
//! demand by application data units (the slides of Etalon's first version, demand estimation).
//!
//! Each write is recorded as it happens. A VOQ sees how far each flow has come by the sequence numbers of the packets
//! that leave it, so that bytes that are sent twice count once. Bytes are the applications': headers are not counted.
//!
//! Besides the world's flows there may be connections that programs on external hosts have opened. They are recorded
//! from their first write on, and forgotten when they end.

use super::racks::{Racks, rack_id};
use crate::flow::endpoint_at;
use firstlight_circuits::Demand;
use firstlight_net::{FlowTuple, HostId, Packet, TcpFlags, TcpSegment};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The backlog of each pair of racks. Flows are identified by the endpoints of their senders.
pub(super) struct AduBacklog {
    /// The first endpoint of each host, and one past the last.
    first: Vec<u32>,
    flows: Vec<SendProgress>,
    /// Connections of programs on external hosts.
    programs: BTreeMap<FlowTuple, ProgramProgress>,
    pairs: Vec<PairBacklog>,
}

/// How far a flow has come.
#[derive(Clone, Copy, Default)]
struct SendProgress {
    /// The sequence number after the last byte that has passed.
    passed: u32,
    /// The flow never ends: bytes that pass are not subtracted from those written.
    endless: bool,
}

/// How far a program's connection has come.
#[derive(Clone, Copy)]
struct ProgramProgress {
    /// The sequence number after the last byte that has passed.
    passed: u32,
    /// Bytes written that have not passed.
    waiting: u64,
}

#[derive(Clone, Copy, Default)]
struct PairBacklog {
    /// Bytes written that have not passed.
    waiting: u64,
    /// Flows that never end.
    endless: u32,
}

impl AduBacklog {
    pub(super) fn new(first: Vec<u32>, pairs: usize) -> Self {
        let endpoints = first.last().map_or(0, |last| *last as usize);
        let (flows, programs) = (vec![SendProgress::default(); endpoints], BTreeMap::new());
        AduBacklog { first, flows, programs, pairs: vec![PairBacklog::default(); pairs] }
    }

    /// The endpoint of a flow that has this port of a host, if there is one.
    fn endpoint(&self, host: HostId, port: u16) -> Option<usize> {
        endpoint_at(&self.first, host, port)
    }

    fn write(&mut self, endpoint: usize, pair: usize, bytes: Option<u64>) {
        let backlog = &mut self.pairs[pair];
        match bytes {
            Some(bytes) => backlog.waiting += bytes,
            None => backlog.endless += 1,
        }
        self.flows[endpoint].endless = bytes.is_none();
    }

    /// A packet of a pair of racks has left its VOQ.
    pub(super) fn on_passed(&mut self, pair: usize, packet: &Packet) {
        let Some(endpoint) = self.endpoint(packet.src(), packet.sport()) else {
            return self.on_program_passed(packet);
        };
        let Some(segment) = packet.tcp() else { return };
        let flow = &mut self.flows[endpoint];
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

    /// A program has written `bytes` more to its connection; a negative number is what it wrote less than announced.
    fn on_program_write(&mut self, connection: FlowTuple, sequence: u32, bytes: i64) {
        let known = match self.programs.entry(connection) {
            Entry::Occupied(known) => known.into_mut(),
            // Before its first write none of its data has been sent.
            Entry::Vacant(new) if bytes > 0 => new.insert(ProgramProgress { passed: sequence, waiting: 0 }),
            Entry::Vacant(_) => return,
        };
        known.waiting = known.waiting.saturating_add_signed(bytes);
    }
}

/// Records a segment that passes. Returns how many of its bytes had not passed before, if there are any.
fn advance(passed: &mut u32, segment: TcpSegment<'_>) -> Option<u32> {
    let end = segment.seq().wrapping_add(segment.payload());
    let new = end.wrapping_sub(*passed);
    let further = segment.payload() > 0 && new < 1 << 31;
    if further {
        *passed = end;
    }
    further.then_some(new)
}

impl Racks {
    /// Bytes that hosts have written and that have not passed; a flow without an end has more than any number.
    pub(super) fn adu_demand(&self) -> Demand {
        let backlog = self.backlog.as_ref().expect("writes are recorded where the demand is asked for");
        let mut demand = Demand::zero(self.count);
        for (pair, PairBacklog { waiting, endless }) in backlog.pairs.iter().enumerate() {
            let bytes = if *endless > 0 { u64::MAX } else { *waiting };
            demand.add(rack_id(pair / self.count), rack_id(pair % self.count), bytes);
        }
        for (connection, progress) in &backlog.programs {
            let [src, dst] = [connection.src, connection.dst].map(|host| rack_id(self.rack(host)));
            demand.add(src, dst, progress.waiting);
        }
        demand
    }

    /// Records writes from now on. `first` has the first endpoint of each host, and the number of endpoints at its end.
    pub(super) fn record_writes(&mut self, first: Vec<u32>) {
        self.backlog = Some(Box::new(AduBacklog::new(first, self.pairs.len())));
    }

    fn pair_of(&self, hosts: [HostId; 2]) -> usize {
        self.pair(self.rack(hosts[0]), self.rack(hosts[1]))
    }

    /// Bytes are written to the flow whose sender is this endpoint; `None` when the flow never ends.
    pub(super) fn on_write(&mut self, endpoint: usize, hosts: [HostId; 2], bytes: Option<u64>) {
        let pair = self.pair_of(hosts);
        if let Some(backlog) = &mut self.backlog {
            backlog.write(endpoint, pair, bytes);
        }
    }

    /// A program writes `bytes` to its connection, which begin with this sequence number; a negative number is what it
    /// wrote less than announced.
    pub(super) fn on_program_write(&mut self, connection: FlowTuple, sequence: u32, bytes: i64) {
        if let Some(backlog) = &mut self.backlog
            && backlog.endpoint(connection.src, connection.sport).is_none()
        {
            backlog.on_program_write(connection, sequence, bytes);
        }
    }

    /// A program's connection is over: the bytes that it has not sent will not pass.
    pub(super) fn on_program_close(&mut self, connection: FlowTuple) {
        if let Some(backlog) = &mut self.backlog {
            backlog.programs.remove(&connection);
        }
    }

    /// Notifies that a flow without a size between these hosts has ended.
    pub(super) fn on_end(&mut self, hosts: [HostId; 2]) {
        let pair = self.pair_of(hosts);
        if let Some(backlog) = &mut self.backlog {
            backlog.pairs[pair].endless -= 1;
        }
    }
}
