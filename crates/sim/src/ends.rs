//! The ends of the flows: a connection from the flow's start until all is acknowledged, and who finds it.
//!
//! An end has its place from the beginning, so that a packet finds it by arithmetic and its timer has an order; its
//! connection is there only while it is needed, in memory that later ones use again. So a run costs memory for the flows
//! that are under way, not for those to come or gone.

use crate::fabric::Fabric;
use crate::flow::{FlowConfig, FlowState, Places};
use crate::lines::{Lines, Waiter};
use firstlight_net::{HostId, Packet};
use firstlight_transport::{Connection, Endpoint};
use firstlight_units::Time;

/// A connection at work.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) connection: Connection,
    /// Something is to be done when so many bytes have been received, or acknowledged; `u64::MAX` for nothing.
    pub(crate) goal: u64,
    pub(crate) host: HostId,
    pub(crate) flow: u32,
    pub(crate) receives: bool,
    pub(crate) class: u8,
    /// It is in its host's line.
    pub(crate) waits: bool,
}

impl Live {
    /// Whether its goal is reached.
    #[inline]
    pub(crate) fn is_at_goal(&self) -> bool {
        let bytes = if self.receives { self.connection.bytes_received() } else { self.connection.bytes_acked() };
        bytes >= self.goal
    }

    /// Sends what it has to send, as far as its host's interface takes it, and tells when its timer is due. Its place is this.
    #[inline]
    pub(crate) fn transmit(&mut self, place: usize, fabric: &mut Fabric, lines: &mut Lines, now: Time) -> Option<Time> {
        if self.connection.has_output() && !self.send(fabric, now) {
            return self.wait(place, lines, now);
        }
        self.connection.poll_timeout()
    }

    /// False when the interface is full.
    #[inline(never)]
    fn send(&mut self, fabric: &mut Fabric, now: Time) -> bool {
        while fabric.has_room(self.host) {
            if !self.send_one(fabric, now) {
                return true;
            }
        }
        false
    }

    /// Sends a packet, if it has one; tells whether it may have more.
    #[inline]
    pub(crate) fn send_one(&mut self, fabric: &mut Fabric, now: Time) -> bool {
        let write = |packet: &mut Packet| {
            let written = self.connection.transmit(now, packet);
            if self.class != 0 {
                packet.set_class(self.class);
            }
            written
        };
        fabric.inject_with(self.host, now, write) && self.connection.has_output()
    }

    #[cold]
    fn wait(&mut self, place: usize, lines: &mut Lines, now: Time) -> Option<Time> {
        if !self.waits {
            self.waits = true;
            lines.join(self.host, Waiter::End(place));
        }
        self.deadline(now)
    }

    /// When its timer is due. While it waits, what is due already waits with it.
    pub(crate) fn deadline(&mut self, now: Time) -> Option<Time> {
        self.connection.poll_timeout().filter(|at| !self.waits || *at > now)
    }
}

/// Where an end's connection is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Slot(u32);

impl Slot {
    const BEFORE: Slot = Slot(u32::MAX);
    const AFTER: Slot = Slot(u32::MAX - 1);
}

/// All ends, by place.
#[derive(Debug)]
pub(crate) struct Ends {
    slots: Vec<Slot>,
    live: Vec<Live>,
    free: Vec<u32>,
}

impl Ends {
    /// So many places, none with a connection.
    pub(crate) fn new(places: usize) -> Self {
        Ends { slots: vec![Slot::BEFORE; places], live: vec![], free: vec![] }
    }

    /// The connection at a place, if there is one now.
    #[inline]
    pub(crate) fn get_mut(&mut self, place: usize) -> Option<&mut Live> {
        let slot = self.slots[place];
        self.live.get_mut(slot.0 as usize)
    }

    pub(crate) fn get(&self, place: usize) -> Option<&Live> {
        self.live.get(self.slots[place].0 as usize)
    }

    /// Whether a connection was at this place and is no more.
    pub(crate) fn is_over(&self, place: usize) -> bool {
        self.slots[place] == Slot::AFTER
    }

    /// Makes the connections of a flow, at its places.
    pub(crate) fn open(&mut self, config: &FlowConfig, places: &Places, flow: usize, isns: [u32; 2]) {
        let (hosts, ends) = ([config.src, config.dst], places.ends[flow]);
        let endpoint = |side: usize| Endpoint { host: hosts[side], port: places.port(hosts[side], ends[side]) };
        for side in [0, 1] {
            let (here, there) = (endpoint(side), endpoint(1 - side));
            self.put(
                ends[side],
                Live {
                    connection: Connection::new(&config.tcp, &config.cc, here, there, isns[side]),
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

    fn put(&mut self, place: usize, live: Live) {
        let slot = self.free.pop().unwrap_or(self.live.len() as u32);
        if slot as usize == self.live.len() {
            self.live.push(live);
        } else {
            self.live[slot as usize] = live;
        }
        self.slots[place] = Slot(slot);
    }

    /// Ends the connections of a flow, which are not used any more; their memory is for others.
    pub(crate) fn close(&mut self, ends: [usize; 2]) {
        for place in ends {
            let slot = std::mem::replace(&mut self.slots[place], Slot::AFTER);
            self.free.push(slot.0);
        }
    }

    /// What the connections at these places tell; nothing before they are opened.
    pub(crate) fn state(&self, ends: [usize; 2]) -> Option<FlowState> {
        let [sender, receiver] = ends.map(|place| self.get(place));
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
            outside: false,
        };
        let flows = vec![flow; 100];
        let places = Places::new(&flows, 2).expect("two hosts");
        let mut ends = Ends::new(200);
        for (number, config) in flows.iter().enumerate() {
            let own = places.ends[number];
            assert!(own.iter().all(|place| ends.get(*place).is_none() && !ends.is_over(*place)));
            ends.open(config, &places, number, [1, 2]);
            assert!(own.iter().all(|place| ends.get(*place).is_some_and(|live| live.flow == number as u32)));
            // Two flows at a time.
            if number > 0 {
                let before = places.ends[number - 1];
                ends.close(before);
                assert!(before.iter().all(|place| ends.get(*place).is_none() && ends.is_over(*place)));
            }
        }
        assert_eq!(ends.live.len(), 4);
    }
}
