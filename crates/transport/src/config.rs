//! What a TCP endpoint can be told. Defaults are those of a Linux kernel out of the box.

use firstlight_net::HostId;
use firstlight_units::{Bytes, Span};

/// One end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Endpoint {
    /// The host.
    pub host: HostId,
    /// The TCP port on that host.
    pub port: u16,
}

/// The option for timestamps of the interfaces: 14 bytes, padded to whole words.
pub(crate) const LATENCY_OPTION: u16 = 16;

/// What is added to probe and reordering timeouts; measured (docs/models/tcp.md).
const TIMER_SLACK: Span = Span::from_ms(2);

/// Settings of an endpoint. All times are of the host's own clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpConfig {
    /// Largest IP packet in bytes; the largest segment is 40 bytes less (IP, TCP), 12 less for timestamps, and 16 less
    /// where the congestion control asks for timestamps of the interfaces.
    pub mtu: u16,
    /// Initial congestion window in packets (RFC 6928).
    pub initial_window: u32,
    /// The largest receive window that is offered.
    pub receive_window: Bytes,
    /// The window that the receiver's buffer holds starts at 128 KiB, packets' own memory included, and is tuned to what
    /// arrives in a round trip, up to `receive_window`; without it is that large from the start (dynamic right-sizing).
    pub autotune: bool,
    /// The most that the stack holds of what the application has written and the peer has not acknowledged; `None`: any
    /// amount. Less than a segment counts as one.
    pub send_buffer: Option<Bytes>,
    /// The shortest retransmission timeout. Linux: 200 ms, which is there the floor under its variance term too.
    pub rto_min: Span,
    /// That floor, so that RTO >= SRTT + this; `None`: the same as `rto_min`.
    pub rto_variance: Option<Span>,
    /// Timeout before the first RTT sample (RFC 6298, section 2.1).
    pub rto_initial: Span,
    /// Ceiling of the backed-off timeout.
    pub rto_max: Span,
    /// Delay of an ACK (Linux: 40 ms); up to five times as long where data arrive that slowly.
    pub delayed_ack: Span,
    /// Packets that are acknowledged at once, at most, when a connection starts or duplicates arrive (Linux: 16, and half a window).
    pub quick_acks: u32,
    /// Hold back ACKs that only report more data out of order, beyond the first three for a gap (Linux since 4.18).
    pub compress_sacks: bool,
    /// New data go out in pieces of up to 64 KiB, as hosts with segmentation offload send them; without: packet by packet.
    pub bursts: bool,
    /// The tick of the host's clock (Linux: 1/HZ; 4 ms with HZ=250, its own default). Timers expire at the tick after
    /// the one that ends their span, probe and reordering timeouts have 2 ms of slack, and CUBIC evaluates its curve
    /// once per tick. Zero: exact, without slack.
    pub tick: Span,
    /// Negotiate ECN (RFC 3168). A controller that needs it, like DCTCP, turns it on by itself.
    pub ecn: bool,
    /// Forward RTO-recovery, the detection of spurious timeouts (RFC 5682).
    pub frto: bool,
    /// Tail loss probes (RFC 8985, section 7).
    pub tail_loss_probe: bool,
    /// Offer and send selective acknowledgements (RFC 2018). Without them losses are found by duplicate acknowledgements
    /// (RFC 6582).
    pub sack: bool,
    /// Offer timestamps (RFC 7323), which take 12 bytes of each packet.
    pub timestamps: bool,
    /// Part of a segment waits while one is in flight (Nagle's algorithm, RFC 9293, section 3.7.4).
    pub nagle: bool,
    /// What experiments do not set.
    pub stack: StackConfig,
}

/// Settings of a host's stack that experiments leave as a Linux kernel has them. Tests of the endpoint change them, as
/// a kernel's own tests do; each is named with its sysctl.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StackConfig {
    /// The least time between two answers to segments that are not acceptable and carry no data (RFC 5961, section 7;
    /// `tcp_invalid_ratelimit`).
    pub challenge_interval: Span,
    /// Part of a burst goes out where it is at least this part of the window (`tcp_tso_win_divisor`).
    pub burst_share: u64,
    /// The least packets of a burst (`tcp_min_tso_segs`).
    pub least_burst: u32,
    /// The window starts again after an idle time (RFC 5681, section 4.1; `tcp_slow_start_after_idle`).
    pub restart_after_idle: bool,
    /// Memory of the buffer for what is not acknowledged when a connection begins (`tcp_wmem`, second number).
    pub send_buffer: Bytes,
    /// Memory that this buffer is tuned to at most (`tcp_wmem`, third number).
    pub send_buffer_max: Bytes,
    /// Memory of the buffer for what arrives when a connection begins (`tcp_rmem`, second number).
    pub receive_buffer: Bytes,
    /// Memory of this buffer at most; `None`: what `receive_window` takes (`tcp_rmem`, third number).
    pub receive_memory: Option<Bytes>,
    /// The memory that packets take when they arrive.
    pub memory: Memory,
    /// The window is taken back where memory is short (`tcp_shrink_window`).
    pub shrink_window: bool,
}

/// The memory that a packet takes when it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Of a network interface: payload, and a fixed part for headers and description.
    Interface,
    /// Of a tun device: blocks of powers of two up to a page, then whole pages.
    Tun,
}

impl Memory {
    /// What a packet of an interface takes besides its payload, in bytes; measured (docs/models/tcp.md).
    pub const BESIDE_PAYLOAD: u64 = 890;

    /// Bytes that a packet with so much payload takes.
    #[inline]
    pub fn of(self, payload: u64) -> u64 {
        match self {
            Memory::Interface => payload + Self::BESIDE_PAYLOAD,
            Memory::Tun => tun_memory(payload),
        }
    }
}

/// Measured with packets of 100 to 65,000 bytes on a tun device (Linux 6.18).
fn tun_memory(payload: u64) -> u64 {
    const DESCRIPTION: u64 = 256;
    const PAGE: u64 = 4096;
    let block = payload + 440;
    let rounded = match block {
        0..=576 => 576,
        577..=PAGE => block.next_power_of_two(),
        _ => block.next_multiple_of(PAGE),
    };
    rounded + DESCRIPTION
}

impl Default for StackConfig {
    fn default() -> Self {
        StackConfig {
            challenge_interval: Span::from_ms(500),
            burst_share: 3,
            least_burst: 2,
            restart_after_idle: true,
            send_buffer: Bytes::new(16 << 10),
            send_buffer_max: Bytes::new(4 << 20),
            receive_buffer: Bytes::new(128 << 10),
            receive_memory: None,
            memory: Memory::Interface,
            shrink_window: false,
        }
    }
}

impl Default for TcpConfig {
    fn default() -> Self {
        TcpConfig {
            mtu: 9000,
            initial_window: 10,
            receive_window: Bytes::new(6 << 20),
            autotune: true,
            send_buffer: None,
            rto_min: Span::from_ms(200),
            rto_variance: None,
            rto_initial: Span::from_secs(1),
            rto_max: Span::from_secs(120),
            delayed_ack: Span::from_ms(40),
            quick_acks: 16,
            compress_sacks: true,
            bursts: true,
            tick: Span::from_ms(4),
            ecn: false,
            frto: true,
            tail_loss_probe: true,
            sack: true,
            timestamps: true,
            nagle: false,
            stack: StackConfig::default(),
        }
    }
}

/// A setting that no endpoint can work with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The MTU leaves no room for payload.
    #[error("an MTU of {0} B leaves no payload: headers take 60 B, so use at least 100 B")]
    Mtu(u16),
    /// The initial window is zero.
    #[error("an initial window of 0 packets never sends: use at least 1")]
    InitialWindow,
    /// The receive window is out of range.
    #[error("a receive window of {0} cannot be offered: use at least one segment and at most 1 GiB (RFC 7323)")]
    ReceiveWindow(Bytes),
    /// A timeout is zero.
    #[error("{0} must be longer than zero")]
    ZeroTimeout(&'static str),
}

impl TcpConfig {
    /// Payload bytes of a full segment.
    pub const fn mss(&self) -> u32 {
        let options = if self.timestamps { 12 } else { 0 };
        (self.mtu - 40 - options) as u32
    }

    /// Checks that an endpoint can work with these settings.
    ///
    /// # Errors
    /// The first setting that it cannot work with.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if self.mtu < 100 {
            return Err(ConfigError::Mtu(self.mtu));
        }
        if self.initial_window == 0 {
            return Err(ConfigError::InitialWindow);
        }
        let window = self.receive_window.get();
        if window < u64::from(self.mss()) || window > 1 << 30 {
            return Err(ConfigError::ReceiveWindow(self.receive_window));
        }
        let timeouts = [("rto_min", self.rto_min), ("rto_initial", self.rto_initial), ("rto_max", self.rto_max)];
        match timeouts.iter().find(|(_, span)| span.is_zero()) {
            Some((name, _)) => Err(ConfigError::ZeroTimeout(name)),
            None => Ok(()),
        }
    }

    /// What Linux adds to probe and reordering timeouts, where its clock ticks: 2 ms.
    pub(crate) fn timer_slack(&self) -> Span {
        if self.tick.is_zero() { Span::ZERO } else { TIMER_SLACK }
    }

    /// The window scale that lets `receive_window` fit in 16 bits (RFC 7323, section 2).
    pub(crate) fn window_scale(&self) -> u8 {
        let bits = 64 - self.receive_window.get().leading_zeros() as u8;
        bits.saturating_sub(16)
    }
}
