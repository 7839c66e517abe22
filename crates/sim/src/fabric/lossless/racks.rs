//! Lossless Ethernet on a hybrid fabric: a ToR pauses its hosts, and what comes from the packet network; the packet switch
//! pauses ToRs.
//!
//! Accounts, causes and pause frames are those of packet fabrics; all packets are one class, as a VOQ has one queue. What a ToR
//! holds for a host's link waits in any of its VOQs, or for a host of the rack. A pause of an uplink stops the rack's VOQs
//! together, but not its circuit.
//!
//! Circuits are never paused: a pause frame would have to come back over the circuit switch, and a matching that joins S to D
//! rarely joins D to S. Nothing waits behind a circuit but the receiving ToR's ports to its hosts. What came by circuits
//! has an account there as well, without a limit, so that what it takes is told.
//!
//! No circle of waiting is possible: hosts wait for ToRs, these for the packet switch, this for ToRs' ports to hosts, these perhaps
//! for hosts' adapters, and hosts take everything.

use super::accounts::Accounts;
use super::ledger::Ledger;
use super::places::{Place, Places};
use super::victims::Victims;
use crate::config::HybridConfig;
use crate::fabric::core::Core;
use firstlight_net::pfc::{PAUSE_FRAME, PfcConfig, PfcLimits};
use firstlight_net::topology::Wire;
use firstlight_net::{Discipline, Line, PacketId, PausablePort, Ring, Sent, Serializer};
use firstlight_units::{Bytes, Span, Time};

/// A packet that its switch made itself: a notification of QCN, which no account holds.
pub(super) const HERE: usize = usize::MAX;

/// What a line's transmitter does besides its packets.
///
/// The end of each transmission is an event here. Elsewhere there is one only if something waits, and what comes at the very
/// moment of the end goes at once; so it does here, lest thresholds that are never reached change anything.
#[derive(Clone, Copy, Default)]
pub(super) struct Transmitter {
    /// What it has begun and not finished.
    pub(super) serving: Option<Sent>,
    pub(super) paused: bool,
    /// Whether the far end is to pause, and what it was told last.
    pub(super) wanted: bool,
    told: bool,
    /// Nothing else waited when it began.
    pub(super) last: bool,
}

impl Transmitter {
    /// When to try again if no packet may begin now, if at all. Begins a pause frame if one is due.
    pub(super) fn hold(&mut self, line: &mut Line, now: Time) -> Option<Option<Time>> {
        if self.serving.is_none() && self.wanted != self.told {
            self.told = self.wanted;
            self.serving = Some(Sent::Pause(u8::from(self.told)));
            line.hold(PAUSE_FRAME, now);
        }
        match self.serving {
            Some(_) => Some(Some(line.free_at())),
            None => self.paused.then_some(None),
        }
    }

    pub(super) fn serves_packet(&self) -> bool {
        matches!(self.serving, Some(Sent::Packet(_)))
    }
}

/// A link that can be paused.
pub(super) struct Link {
    /// From the end of a pause frame on the other direction until it takes effect here.
    pub(super) way: Span,
    /// Pause frames under way: when each takes effect, and whether it pauses.
    pub(super) frames: Ring<(Time, bool)>,
}

/// What a hybrid fabric has when its links can be paused.
pub(in crate::fabric) struct Pauses {
    pub(super) places: Places,
    pub(super) config: PfcConfig,
    /// The ToRs' ports to the hosts, which send pause frames.
    pub(in crate::fabric) ports: Vec<PausablePort>,
    pub(super) uplinks: Vec<Transmitter>,
    pub(super) downlinks: Vec<Transmitter>,
    pub(super) circuits: Vec<Transmitter>,
    pub(super) links: Vec<Link>,
    pub(super) accounts: Accounts,
    pub(super) ledger: Ledger,
    pub(super) victims: Victims,
    /// The place that each packet came from, or [`HERE`].
    pub(super) came: Vec<usize>,
    pub(super) lost: u64,
}

impl Pauses {
    /// And the hosts' interfaces, which can be paused.
    pub(in crate::fabric) fn build(config: &HybridConfig, core: &mut Core) -> Option<Box<Pauses>> {
        let pfc = config.pfc.as_ref()?;
        let (racks, scale, wires) = (config.racks, config.time_scale, Wires::of(config));
        let port = |wire: Wire, stack: Span| {
            let serializer = Serializer::new(wire.rate, scale);
            PausablePort::pausable(serializer, (wire.delay + stack) * u64::from(scale), &[Discipline::default()], 0)
        };
        let hosts = racks * config.hosts_per_rack;
        core.make_pausable(vec![port(wires.from_host, Span::ZERO); hosts]);
        let places = Places::new(config);
        let of_adapters = config.interface.adapter.receive.map(|receive| pfc.at_adapter(receive.buffer));
        let limits = |place| wires.limits(pfc, of_adapters.as_ref(), places.place(place));
        let limits: Vec<_> = (0..places.count()).map(limits).collect();
        let link = |link| {
            let place = places.of_link(link);
            let (back, response) = (wires.back_of(place), limits[places.of(place)].response);
            Link { way: (back.delay + response) * u64::from(scale), frames: Ring::with_capacity(2) }
        };
        let count = places.count();
        Some(Box::new(Pauses {
            config: *pfc,
            ports: vec![port(wires.to_host, config.interface.stack_on_link()); hosts],
            uplinks: vec![Transmitter::default(); racks],
            downlinks: vec![Transmitter::default(); racks],
            circuits: vec![Transmitter::default(); racks],
            links: (0..places.links()).map(link).collect(),
            accounts: Accounts::new(|from| places.egresses(from), limits, 1),
            ledger: Ledger::new(count, 1, pfc.most_events),
            victims: Victims::new(count, count),
            came: vec![],
            lost: 0,
            places,
        }))
    }

    /// How many links can be paused.
    pub(in crate::fabric) fn count_links(config: &HybridConfig) -> usize {
        if config.pfc.is_some() { Places::new(config).links() } else { 0 }
    }

    pub(super) fn of(&self, place: Place) -> usize {
        self.places.of(place)
    }

    /// Whether a packet from there finds room; it is lost if not.
    pub(super) fn has_room(&mut self, from: Place, size: u16) -> bool {
        let room = !self.config.has(0) || self.accounts.has_room(self.of(from), 0, size);
        self.lost += u64::from(!room);
        room
    }

    pub(super) fn came_from(&mut self, id: PacketId, from: usize) {
        if self.came.len() <= id.index() {
            self.came.resize(id.index() + 1, HERE);
        }
        self.came[id.index()] = from;
    }

    /// A ToR's port to a host may have become idle or busy.
    pub(super) fn port_changed(&mut self, host: usize, now: Time) {
        let place = self.of(Place::HostPort(host));
        self.victims.change(place, self.ports[host].is_idle(), now);
    }
}

/// The rates and delays of links.
struct Wires {
    from_host: Wire,
    to_host: Wire,
    packet: Wire,
}

impl Wires {
    fn of(config: &HybridConfig) -> Self {
        let links = &config.links;
        Wires {
            from_host: Wire { rate: links.rate, delay: links.delay },
            to_host: Wire { rate: links.receive_rate, delay: links.delay },
            packet: Wire { rate: config.packet.rate, delay: config.packet.delay },
        }
    }

    fn back_of(&self, place: Place) -> Wire {
        match place {
            Place::Nic(_) => self.to_host,
            Place::HostPort(_) => self.from_host,
            _ => self.packet,
        }
    }

    fn limits(&self, pfc: &PfcConfig, of_adapters: Option<&PfcConfig>, place: Place) -> PfcLimits {
        let unlimited = Bytes::new(u64::MAX);
        match place {
            Place::Nic(_) => pfc.limits(self.from_host, self.to_host),
            Place::Uplink(_) | Place::Downlink(_) => pfc.limits(self.packet, self.packet),
            Place::Circuit(_) => {
                PfcLimits { xon: unlimited, xoff: unlimited, buffer: unlimited, ..PfcLimits::default() }
            }
            Place::HostPort(_) => {
                of_adapters.map_or(PfcLimits::default(), |pfc| pfc.limits(self.to_host, self.from_host))
            }
            Place::Voq(..) | Place::Adapter(_) => PfcLimits::default(),
        }
    }
}
