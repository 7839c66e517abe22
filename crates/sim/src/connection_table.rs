//! The connection table: the connections of all flows' endpoints, each from the flow's start until all is acknowledged.
//!
//! An endpoint has its number from the beginning, so that a packet finds it by arithmetic and its timer has an order.
//! Its connection exists only while it is needed, in memory that later connections use again. So a run costs memory for
//! the flows that are active, not for those to come or gone.

use crate::fabric::Fabric;
use crate::flow::{EndpointIndex, FlowConfig, FlowState};
use crate::recorder::Recorder;
use crate::wait_queues::{WaitQueues, Waiter};
use firstlight_net::{HostId, Packet};
use firstlight_transport::{Connection, Endpoint};
use firstlight_units::Time;

/// One end of an active flow: its connection, and the world's state of it.
#[derive(Debug)]
pub(crate) struct FlowEnd {
    pub(crate) connection: Connection,
    /// The bytes that the program has read, or that are acknowledged, at which the world must act; `u64::MAX` for none.
    pub(crate) goal: u64,
    pub(crate) host: HostId,
    pub(crate) flow: u32,
    pub(crate) receives: bool,
    pub(crate) class: u8,
    /// The end is in its host's wait queue.
    pub(crate) waits: bool,
}

impl FlowEnd {
    /// Whether the goal is reached.
    #[inline]
    pub(crate) fn is_at_goal(&self) -> bool {
        let bytes = if self.receives { self.connection.bytes_read() } else { self.connection.bytes_acked() };
        bytes >= self.goal
    }

    /// Sends the packets that the connection has to send, as far as its host's interface has room. Returns when the
    /// connection's timer is due. `endpoint` is the number of the end.
    #[inline(always)]
    pub(crate) fn transmit(
        &mut self,
        endpoint: usize,
        fabric: &mut Fabric,
        queues: &mut WaitQueues,
        now: Time,
    ) -> Option<Time> {
        let sent = !self.connection.has_output() || self.send(fabric, now);
        if let Some(recorder) = fabric.recorder() {
            self.record(endpoint, recorder, sent, now);
        }
        if !sent {
            return self.wait(endpoint, queues, now);
        }
        self.connection.poll_timeout()
    }

    /// Records that the end has sent all that it may send. This is a function of its own so that it costs nothing where
    /// nothing is recorded.
    #[cold]
    fn record(&self, endpoint: usize, recorder: &mut Recorder, sent: bool, now: Time) {
        if let Some(causes) = recorder.causes.as_mut().filter(|_| !sent && !self.waits) {
            causes.on_blocked(endpoint, now);
        }
        self.settle(endpoint, recorder, now);
    }

    /// Records the state of the end.
    pub(crate) fn settle(&self, endpoint: usize, recorder: &mut Recorder, now: Time) {
        let flow = (!self.receives).then_some(self.flow);
        recorder.settle(endpoint, flow, self.connection.standing(), now);
    }

    /// Sends until there is nothing to send, or the interface is full: then it returns false.
    #[inline]
    fn send(&mut self, fabric: &mut Fabric, now: Time) -> bool {
        while fabric.has_room(self.host) {
            if !self.send_one(fabric, now) {
                return true;
            }
        }
        false
    }

    /// Sends a packet, if there is one. Returns whether there may be more.
    #[inline]
    pub(crate) fn send_one(&mut self, fabric: &mut Fabric, now: Time) -> bool {
        let write = |packet: &mut Packet| {
            let written = self.connection.transmit(now, packet);
            if self.class != 0 {
                packet.set_class(self.class);
            }
            written
        };
        if !fabric.inject_with(self.host, now, write) {
            return false;
        }
        self.connection.on_queued(fabric.departure(self.host).unwrap_or(Time::MAX), now);
        self.connection.has_output()
    }

    #[cold]
    fn wait(&mut self, endpoint: usize, queues: &mut WaitQueues, now: Time) -> Option<Time> {
        if !self.waits {
            self.waits = true;
            queues.push(self.host, Waiter::Endpoint(endpoint));
        }
        self.deadline(now)
    }

    /// When the connection's timer is due. While the connection waits for room, a timer that is already due waits as
    /// well.
    pub(crate) fn deadline(&mut self, now: Time) -> Option<Time> {
        self.connection.poll_timeout().filter(|at| !self.waits || *at > now)
    }
}

/// The place of an endpoint's connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Slot(u32);

impl Slot {
    const BEFORE: Slot = Slot(u32::MAX);
    const AFTER: Slot = Slot(u32::MAX - 1);
}

/// The connections by endpoint.
#[derive(Debug)]
pub(crate) struct ConnectionTable {
    slots: Vec<Slot>,
    ends: Vec<FlowEnd>,
    free: Vec<u32>,
}

impl ConnectionTable {
    /// A table of `endpoints` endpoints, none with a connection.
    pub(crate) fn new(endpoints: usize) -> Self {
        ConnectionTable { slots: vec![Slot::BEFORE; endpoints], ends: vec![], free: vec![] }
    }

    /// The connection of an endpoint, if there is one now.
    #[inline]
    pub(crate) fn get_mut(&mut self, endpoint: usize) -> Option<&mut FlowEnd> {
        let slot = self.slots[endpoint];
        self.ends.get_mut(slot.0 as usize)
    }

    /// The connection of an endpoint, if there is one now.
    pub(crate) fn get(&self, endpoint: usize) -> Option<&FlowEnd> {
        self.ends.get(self.slots[endpoint].0 as usize)
    }

    /// Whether this endpoint's connection is over.
    pub(crate) fn is_over(&self, endpoint: usize) -> bool {
        self.slots[endpoint] == Slot::AFTER
    }

    /// Makes the connections of both ends of a flow.
    pub(crate) fn open(&mut self, config: &FlowConfig, index: &EndpointIndex, flow: usize, isns: [u32; 2]) {
        let (hosts, endpoints) = ([config.src, config.dst], index.of_flows[flow]);
        let end = |side: usize| Endpoint { host: hosts[side], port: index.port(hosts[side], endpoints[side]) };
        for side in [0, 1] {
            let (local, remote) = (end(side), end(1 - side));
            let mut connection = Connection::new(&config.tcp, &config.cc, local, remote, isns[side]);
            if let Some(rate) = config.reads.filter(|_| side == 1) {
                connection.read_at(rate);
            }
            self.put(
                endpoints[side],
                FlowEnd {
                    connection,
                    goal: config.size.map_or(u64::MAX, |size| size.get()),
                    host: hosts[side],
                    flow: flow as u32,
                    receives: side == 1,
                    class: config.class,
                    waits: false,
                },
            );
        }
    }

    fn put(&mut self, endpoint: usize, end: FlowEnd) {
        let slot = self.free.pop().unwrap_or(self.ends.len() as u32);
        if slot as usize == self.ends.len() {
            self.ends.push(end);
        } else {
            self.ends[slot as usize] = end;
        }
        self.slots[endpoint] = Slot(slot);
    }

    /// Removes the connections of a flow; later ones use their memory.
    pub(crate) fn close(&mut self, endpoints: [usize; 2]) {
        for endpoint in endpoints {
            let slot = std::mem::replace(&mut self.slots[endpoint], Slot::AFTER);
            self.free.push(slot.0);
        }
    }

    /// The state of a flow's connections; none before they are opened.
    pub(crate) fn state(&self, endpoints: [usize; 2]) -> Option<FlowState> {
        let [sender, receiver] = endpoints.map(|endpoint| self.get(endpoint));
        let (sender, receiver) = (&sender?.connection, &receiver?.connection);
        Some(FlowState {
            bytes_acked: sender.bytes_acked(),
            bytes_received: receiver.bytes_received(),
            cwnd: sender.cwnd(),
            srtt: sender.srtt(),
            min_rtt: sender.min_rtt(),
            sender: *sender.stats(),
            receiver: *receiver.stats(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firstlight_transport::{CcConfig, TcpConfig};
    use firstlight_units::{Bytes, Span};

    #[test]
    fn the_memory_of_flows_that_are_over_is_used_again() {
        let flow = FlowConfig {
            src: HostId(0),
            dst: HostId(1),
            tcp: TcpConfig::default(),
            cc: CcConfig::from_name("cubic").expect("a controller"),
            size: Some(Bytes::new(1)),
            start: Span::ZERO,
            stop: None,
            jitter: Span::ZERO,
            class: 0,
            reads: None,
            external: false,
            absent: false,
        };
        let flows = vec![flow; 100];
        let index = EndpointIndex::new(&flows, 2).expect("two hosts");
        let mut table = ConnectionTable::new(200);
        for (number, config) in flows.iter().enumerate() {
            let own = index.of_flows[number];
            assert!(own.iter().all(|endpoint| table.get(*endpoint).is_none() && !table.is_over(*endpoint)));
            table.open(config, &index, number, [1, 2]);
            assert!(own.iter().all(|endpoint| table.get(*endpoint).is_some_and(|end| end.flow == number as u32)));
            // Two flows at a time.
            if number > 0 {
                let before = index.of_flows[number - 1];
                table.close(before);
                assert!(before.iter().all(|endpoint| table.get(*endpoint).is_none() && table.is_over(*endpoint)));
            }
        }
        assert_eq!(table.ends.len(), 4);
    }
}
