//! The settings of a TCP endpoint. Defaults are those of a Linux kernel out of the box.

use crate::autotune::Autotune;
use crate::tcp::memory_of_2012;
use firstlight_net::HostId;
use firstlight_units::{Bytes, SettingError, Span};

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

/// Bytes of IP and TCP header with timestamps.
const HEADERS: u16 = 52;

/// The span that is added to probe and reordering timeouts; measured (docs/models/tcp.md).
const TIMER_SLACK: Span = Span::from_ms(2);

/// The hosts' TCP. Its times are of the hosts' own clocks: `time_scale` does not stretch them. Defaults are those of a
/// Linux kernel out of the box.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema), serde(default))]
pub struct TcpConfig {
    /// Largest IP packet in bytes. The largest segment is 40 bytes less (IP, TCP), 12 less for timestamps, and 16 less
    /// where the congestion control asks for timestamps of the interfaces.
    #[cfg_attr(feature = "spec", serde(skip))]
    pub mtu: u16,
    /// Initial congestion window (RFC 6928).
    #[cfg_attr(feature = "spec", schemars(range(min = 1, max = 16_777_216), extend("x-of" = "packets")))]
    pub initial_window: u32,
    /// Floor of the congestion window after losses and marks. A timeout leaves a window of one packet whatever this
    /// says. BBR, Swift and TIMELY have floors of their own: where no other control is used, the key is refused.
    #[cfg_attr(feature = "spec", schemars(range(min = 1, max = 2), extend("x-of" = "packets")))]
    pub min_window: u32,
    /// Cap on the congestion window, whatever the congestion control says: `snd_cwnd_clamp` of a Linux socket.
    #[cfg_attr(
        feature = "spec",
        schemars(range(min = 1, max = 16_777_216), extend("x-of" = "packets", "x-without" = "no cap"))
    )]
    pub max_window: Option<u32>,
    /// Largest receive window. Where it is given, it is not tuned unless `tcp.autotune = true` is written. Where it is
    /// not, the buffer is tuned up to 6 MiB of memory, packets' own included.
    #[cfg_attr(feature = "spec", schemars(extend("x-most" = "1073741824B")))]
    pub receive_window: Bytes,
    /// The receive window starts at what a buffer of 128 KiB holds, packets' own memory included, and is tuned to what
    /// arrives in a round trip, up to `tcp.receive_window` (dynamic right-sizing). `false`: the buffer is fixed. The
    /// window begins with half of its memory, in whole segments, and takes the rest when packets have shown how much
    /// memory they take. `"2012"`: it is tuned as by kernels of that time, which measured round trips in ticks, from a
    /// buffer of 87,380 bytes on; without `tcp.receive_window` up to one of 4 MiB. Linux hosts have no such tuning.
    pub autotune: Autotune,
    /// The most that a sender's stack holds of what the application has written and the peer has not acknowledged,
    /// counted in bytes of payload. Less than a segment counts as one.
    #[cfg_attr(
        feature = "spec",
        schemars(extend("x-most" = "1073741824B", "x-without" = "tuned to the congestion window, up to 4 MiB of \
                                                                 packets' memory"))
    )]
    pub send_buffer: Option<Bytes>,
    /// The shortest retransmission timeout, in whole ticks: max(SRTT + max(4 RTTVAR, `tcp.rto_variance`), this).
    #[cfg_attr(feature = "spec", schemars(extend("x-above" = "0s")))]
    pub rto_min: Span,
    /// Floor under the variance term of the retransmission timeout.
    #[cfg_attr(feature = "spec", schemars(extend("x-without" = "the same as `tcp.rto_min`")))]
    pub rto_variance: Option<Span>,
    /// Timeout before the first RTT sample (RFC 6298, section 2.1).
    #[cfg_attr(feature = "spec", schemars(extend("x-above" = "0s")))]
    pub rto_initial: Span,
    /// Ceiling of the backed-off timeout.
    #[cfg_attr(feature = "spec", schemars(extend("x-least" = "1ms")))]
    pub rto_max: Span,
    /// Delay of an ACK; up to five times as long where data arrive that slowly.
    pub delayed_ack: Span,
    /// The most packets that are acknowledged at once when a connection starts or duplicates arrive.
    #[cfg_attr(feature = "spec", schemars(range(min = 0, max = 16_777_216), extend("x-of" = "packets")))]
    pub quick_acks: u32,
    /// Tick of the hosts' clocks (a kernel's 1/HZ). Timers expire at the tick after the one that ends their span, probe
    /// and reordering timeouts have 2 ms of slack, and CUBIC evaluates its curve once per tick. Zero: exact, without
    /// slack. The tick chooses the kernel of Linux hosts, which has `1ms`, `4ms` or `10ms`.
    pub tick: Span,
    /// Negotiate ECN (RFC 3168). DCTCP negotiates it whatever this says.
    pub ecn: bool,
    /// Which packets of a handshake are ECN-capable on a host that negotiates ECN.
    #[cfg_attr(
        feature = "spec",
        schemars(extend("x-without" = "none on simulated hosts, as in RFC 3168; on Linux hosts both with `dctcp`, else \
                                       none"))
    )]
    pub ect_syn: Option<EctSyn>,
    /// Detect spurious timeouts (F-RTO, RFC 5682).
    pub frto: bool,
    /// Send tail loss probes (RFC 8985, section 7).
    pub tail_loss_probe: bool,
    /// Hold back ACKs that only report more data out of order, beyond the first three for a gap, as Linux does since
    /// 4.18.
    pub compress_sacks: bool,
    /// New data are sent in pieces of up to 64 KiB, as hosts with segmentation offload send them. `false`: packet by
    /// packet, as in ns-2.
    pub bursts: bool,
    /// Senders keep little in their hosts' interfaces (TCP small queues), and small writes wait for what is there
    /// (automatic corking). `false`: neither, as in kernels before 3.6 and in ns-2.
    pub small_queues: bool,
    /// Offer and send selective acknowledgements (RFC 2018). Without them losses are found by duplicate
    /// acknowledgements (RFC 6582).
    pub sack: bool,
    /// The window falls during a reduction by proportional rate reduction (RFC 6937), as in Linux. `false`: at once,
    /// and each packet that is found lost is retransmitted at once, as in NewReno (RFC 6582) and ns-2. Simulated hosts
    /// only.
    #[cfg_attr(feature = "spec", schemars(extend("x-when" = "simulated flow")))]
    pub prr: bool,
    /// Offer timestamps (RFC 7323), which take 12 bytes of each packet.
    pub timestamps: bool,
    /// Part of a segment waits while one is in flight (Nagle's algorithm, RFC 9293, section 3.7.4). `false`: it does
    /// not, as for programs that set `TCP_NODELAY`.
    pub nagle: bool,
    /// Receivers delay ACKs like those whose programs answer on the same connection (Linux: interactive sessions): no
    /// quick acknowledgements, and none when a program has read the end of a write. For requests and replies that have
    /// a connection each.
    pub interactive: bool,
    /// Settings that experiments do not have.
    #[cfg_attr(feature = "spec", serde(skip))]
    pub stack: StackConfig,
}

/// Which packets of a handshake are ECN-capable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "spec",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "snake_case")
)]
pub enum EctSyn {
    /// Neither the SYN nor the SYN-ACK (RFC 3168, section 6.1.1).
    None,
    /// The SYN-ACK (ECN+; RFC 5562).
    SynAck,
    /// The SYN and the SYN-ACK, also where the peer does not ask for ECN (the DCTCP+ of Judd, NSDI'15, section 7.3).
    Both,
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
    /// The most memory of a receive buffer that a program may ask for (`rmem_max`). The window scale allows for it.
    pub receive_limit: Bytes,
    /// The memory that packets take.
    pub memory: Memory,
    /// The window is taken back where memory is short (`tcp_shrink_window`).
    pub shrink_window: bool,
}

/// The memory that packets take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Of a network interface: payload, and a fixed part for headers and description.
    Interface,
    /// Of a tun device: blocks of powers of two up to a page, then whole pages.
    Tun,
}

impl Memory {
    /// The memory of an interface's packet besides its payload, in bytes; measured (docs/models/tcp.md).
    pub const BESIDE_PAYLOAD: u64 = 832;

    /// The memory of a chunk of unsent data besides its payload, in bytes; measured on this kind of kernel, as
    /// [`Memory::headroom`] is.
    pub(crate) const fn beside_chunk(self) -> u64 {
        match self {
            Memory::Interface => Self::BESIDE_PAYLOAD,
            Memory::Tun => 1_280,
        }
    }

    /// The bytes that the stack reserves for headers when it computes the memory of a segment to send.
    pub(crate) const fn headroom(self) -> u64 {
        match self {
            Memory::Interface => 512,
            Memory::Tun => 640,
        }
    }

    /// Packets that lie beyond a gap join until they have so many pieces of pages together; measured, as the pages are.
    pub(crate) const MOST_PIECES: u32 = 17;

    /// Bytes of a page.
    pub(crate) const PAGE: u64 = 4096;

    /// The pages in which the sender has kept the `len` bytes from stream offset `start` on.
    pub(crate) const fn pieces(start: u64, len: u64) -> u32 {
        let first = start.saturating_sub(1);
        ((first + len.saturating_sub(1)) / Self::PAGE - first / Self::PAGE + 1) as u32
    }

    /// Bytes of memory of a packet that continues the data in the buffer. A packet of an interface takes its payload
    /// alone, since it joins the packet before it.
    pub(crate) fn of_joined(self, payload: u64) -> u64 {
        match self {
            Memory::Interface => payload,
            Memory::Tun => self.of(payload),
        }
    }

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
            receive_limit: Bytes::new(4 << 20),
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
            min_window: 2,
            max_window: None,
            receive_window: Bytes::new(6 << 20),
            autotune: Autotune::On,
            send_buffer: None,
            rto_min: Span::from_ms(200),
            rto_variance: None,
            rto_initial: Span::from_secs(1),
            rto_max: Span::from_secs(120),
            delayed_ack: Span::from_ms(40),
            quick_acks: 16,
            compress_sacks: true,
            bursts: true,
            small_queues: true,
            tick: Span::from_ms(4),
            ecn: false,
            ect_syn: None,
            frto: true,
            tail_loss_probe: true,
            sack: true,
            prr: true,
            timestamps: true,
            nagle: false,
            interactive: false,
            stack: StackConfig::default(),
        }
    }
}

impl TcpConfig {
    /// Payload bytes of a full segment.
    pub const fn mss(&self) -> u32 {
        let options = if self.timestamps { 12 } else { 0 };
        (self.mtu - 40 - options) as u32
    }

    /// Checks settings against each other. Each by itself is in the range of its key.
    ///
    /// # Errors
    /// The first setting that does not fit another.
    pub fn check(&self) -> Result<(), SettingError> {
        let window = self.receive_window;
        let segment = u64::from(self.mss());
        SettingError::unless(
            window.get() >= segment,
            "receive_window",
            format!("a receive window of {window} holds no segment of {segment} B: use at least that"),
        )?;
        let least = self.min_window;
        SettingError::unless(
            self.max_window.is_none_or(|cap| cap >= least),
            "max_window",
            format!("a cap below the window's floor, tcp.min_window: use at least {least}"),
        )?;
        let floor = self.rto_min.max(self.rto_initial);
        SettingError::unless(
            self.rto_max >= floor,
            "rto_max",
            format!("{} is too short: use at least rto_min and rto_initial, here {floor}", self.rto_max),
        )
    }

    /// The span that Linux adds to probe and reordering timeouts where its clock has a tick: 2 ms.
    pub(crate) fn timer_slack(&self) -> Span {
        if self.tick.is_zero() { Span::ZERO } else { TIMER_SLACK }
    }

    /// Bytes of memory of the receive buffer at most (`tcp_rmem`, third number).
    pub fn receive_memory(&self) -> u64 {
        let window = self.receive_window.get();
        match self.stack.receive_memory {
            Some(memory) => memory.get(),
            None if self.autotune == Autotune::Year2012 => memory_of_2012(window),
            None => window + window * Memory::BESIDE_PAYLOAD / u64::from(self.mtu - HEADERS),
        }
    }

    /// The window scale that lets the receive buffer, and as much as a program may ask for, fit in 16 bits (RFC 7323,
    /// section 2). Where a program has set the buffer's memory (`SO_RCVBUF`), its windows fit.
    pub(crate) fn window_scale(&self) -> u8 {
        let fixed = self.stack.receive_memory.is_some();
        let buffer = if fixed { self.receive_window.get() } else { self.receive_memory() };
        let most = buffer.max(self.stack.receive_limit.get());
        let bits = 64 - most.leading_zeros() as u8;
        bits.saturating_sub(16)
    }
}
