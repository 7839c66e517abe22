//! Where packets are held up: what a hop's place is called, and how its time is divided.

use firstlight_net::Serializer;
use firstlight_units::Span;

/// The kind of a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum PlaceKind {
    /// A host's interface.
    Nic,
    /// An output port of a switch.
    Port,
    /// A rack's uplink into the packet network, after a VOQ.
    Uplink,
    /// The packet switch's port to a rack.
    Downlink,
    /// A rack's port of the circuit switch, after a VOQ.
    Circuit,
    /// A host's adapter.
    Adapter,
    /// The random part of a host's stack: of its sending side below the number of hosts, of its receiving side above.
    Stack,
    /// The pacer before a host's interface.
    Pacer,
    /// QCN's rate limiters before a host's interface.
    Limiter,
}

impl PlaceKind {
    /// How many kinds there are.
    pub const COUNT: usize = PlaceKind::Limiter as usize + 1;

    /// The place of this kind and number, in one word.
    #[inline]
    pub const fn code(self, index: usize) -> u32 {
        (self as u32) << 24 | index as u32
    }

    /// The number of the kind, and of the place among those of its kind.
    pub const fn of_code(code: u32) -> (usize, usize) {
        ((code >> 24) as usize, (code & 0xff_ffff) as usize)
    }
}

/// A place, on the engine's clock. A packet that comes to it passes a stack, waits, is serialized, propagates, and may
/// pass another stack.
#[derive(Clone, Debug)]
pub struct Place {
    /// What kind of place it is.
    pub kind: PlaceKind,
    /// The place's number among those of its kind.
    pub index: usize,
    /// The place's name, as in table `ports`.
    pub name: String,
    /// Serialization onto the place's link; `None` where packets are only held back.
    pub serializer: Option<Serializer>,
    /// The stack that a packet passes before it waits.
    pub stack_before: Span,
    /// Propagation to the end of the link.
    pub propagation: Span,
    /// The stack that a packet passes after the link.
    pub stack_after: Span,
}

impl Place {
    /// The place as [`super::HopLog::place`] names it.
    pub fn code(&self) -> u32 {
        self.kind.code(self.index)
    }

    /// A link between two nodes.
    pub(crate) fn link(kind: PlaceKind, index: usize, name: String, serializer: Serializer, propagation: Span) -> Self {
        let (stack_before, stack_after) = (Span::ZERO, Span::ZERO);
        Place { kind, index, name, serializer: Some(serializer), stack_before, propagation, stack_after }
    }

    /// What holds packets back without a link.
    pub(crate) fn holding(kind: PlaceKind, index: usize, name: String) -> Self {
        let zero = Span::ZERO;
        Place { kind, index, name, serializer: None, stack_before: zero, propagation: zero, stack_after: zero }
    }
}
