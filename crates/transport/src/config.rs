//! What a TCP endpoint can be told. Defaults are those of a Linux kernel out of the box.

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

/// IPv4 and TCP header with the timestamp option: 20 + 20 + 12 bytes.
pub(crate) const HEADER: u16 = 52;
/// A SYN carries MSS, window scale, SACK-permitted and timestamps: 20 + 20 + 20 bytes.
pub(crate) const SYN_HEADER: u16 = 60;

/// The option for timestamps of the interfaces: 14 bytes, padded to whole words.
pub(crate) const LATENCY_OPTION: u16 = 16;

/// The hosts' TCP. Its times are of the hosts' own clocks: `time_scale` does not stretch them. Defaults are those of a
/// Linux kernel out of the box.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema), serde(default))]
pub struct TcpConfig {
    /// Largest IP packet in bytes. The largest segment is 52 bytes less (IP, TCP, timestamps), or 68 where the
    /// congestion control asks for timestamps of the interfaces.
    #[cfg_attr(feature = "spec", serde(skip))]
    pub mtu: u16,
    /// Initial congestion window (RFC 6928).
    #[cfg_attr(feature = "spec", schemars(range(min = 1, max = 16_777_216), extend("x-of" = "packets")))]
    pub initial_window: u32,
    /// Largest receive window. Where it is given, it is not tuned unless `tcp.autotune = true` is written.
    #[cfg_attr(feature = "spec", schemars(extend("x-most" = "1073741824B")))]
    pub receive_window: Bytes,
    /// The receive window starts at what a buffer of 128 KiB holds, packets' own memory included, and is tuned to what
    /// arrives in a round trip, up to `tcp.receive_window` (dynamic right-sizing). `false`: it is fixed.
    pub autotune: bool,
    /// The most that a sender's stack holds of what the application has written and the peer has not acknowledged. Less
    /// than a segment counts as one. A stack that tunes its buffer to twice the congestion window is limited by the
    /// largest size alone: give that.
    #[cfg_attr(
        feature = "spec",
        schemars(extend("x-most" = "1073741824B", "x-without" = "as much as the application has"))
    )]
    pub send_buffer: Option<Bytes>,
    /// The shortest retransmission timeout: max(SRTT + max(4 RTTVAR, `tcp.rto_variance`), this).
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
    /// Longest delay of an ACK.
    pub delayed_ack: Span,
    /// The most packets that are acknowledged at once when a connection starts or duplicates arrive.
    #[cfg_attr(feature = "spec", schemars(range(min = 0, max = 16_777_216), extend("x-of" = "packets")))]
    pub quick_acks: u32,
    /// Tick of the hosts' clocks (a kernel's 1/HZ). Timers expire on its multiples, probe and reordering timeouts have
    /// two ticks of slack, and CUBIC evaluates its curve once per tick. Zero: exact, without slack. The tick chooses
    /// the kernel of Linux hosts, which has `1ms`, `4ms` or `10ms`.
    pub tick: Span,
    /// Negotiate ECN (RFC 3168). DCTCP negotiates it whatever this says.
    pub ecn: bool,
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
        }
    }
}

impl TcpConfig {
    /// Payload bytes of a full segment.
    pub const fn mss(&self) -> u32 {
        (self.mtu - HEADER) as u32
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
        let floor = self.rto_min.max(self.rto_initial);
        SettingError::unless(
            self.rto_max >= floor,
            "rto_max",
            format!("{} is too short: use at least rto_min and rto_initial, here {floor}", self.rto_max),
        )
    }

    /// How far beyond what is acknowledged the stack has data to send: whole segments of its buffer.
    pub(crate) fn send_room(&self) -> u64 {
        let mss = u64::from(self.mss());
        self.send_buffer.map_or(u64::MAX, |buffer| (buffer.get() / mss).max(1) * mss)
    }

    /// What Linux adds to probe and reordering timeouts: two ticks.
    pub(crate) fn timer_slack(&self) -> Span {
        self.tick * 2
    }

    /// The window scale that lets `receive_window` fit in 16 bits (RFC 7323, section 2).
    pub(crate) fn window_scale(&self) -> u8 {
        let bits = 64 - self.receive_window.get().leading_zeros() as u8;
        bits.saturating_sub(16)
    }
}
