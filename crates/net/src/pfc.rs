//! Lossless Ethernet: when a link is paused, and how much buffer that takes.
//!
//! The model covers priority flow control (IEEE 802.1Qbb, now 802.1Q clause 36) and the PAUSE of 802.3x. A switch has
//! an account for each incoming link and each priority: the bytes that it holds from there. When the account exceeds
//! XOFF, the switch pauses the sender; when it has fallen to XON, the sender resumes.
//!
//! **Headroom** is the number of bytes that can still arrive after the account exceeds XOFF. R is the rate of the data
//! and R' that of the other direction, d and d' are the delays, T is the response time, M the largest packet:
//!
//! ```text
//! headroom = M + R ((M + 64 B) / R' + d' + T + d) + M
//! ```
//!
//! The terms are those of 802.1Qbb, annex O:
//! - The first M is the packet that exceeds XOFF: this model counts a packet when its last bit has arrived.
//! - In the brackets are, in this order: a frame that is in service when the pause frame is made, the pause frame, its
//!   cable, the sender's response time, and the cable of the data. The product is the bytes of all frames that the
//!   sender began in that time. It begins when the last bit of the exceeding packet leaves the sender, d before the
//!   account counts that packet.
//! - The last M is the frame that is in service when the pause takes effect.
//!
//! **Response time.** 802.3 (annex 31B.3.7) limits the time from a pause frame's reception to the sender's last new
//! frame. The limit is a number of quanta of 512 bit times: 1 up to 100 Mb/s, 2 at 1 Gb/s, 60 at 10 Gb/s, 80 at 25
//! Gb/s, 118 at 40 Gb/s, 394 at 100 Gb/s, 905 at 400 Gb/s. This limit is the default. Between two of these rates, and
//! above the last, the number of the next lower rate applies. The numbers from 10 Gb/s on are the 30,720, 40,960,
//! 60,416, 201,728 and 463,360 bit times that P. Gupta et al., "Detecting, Troubleshooting, and Preventing Congestion
//! in Storage Networks" (Cisco Press), chapter 7, quotes from the standard. The standard's own text was not at hand.

use crate::Framing;
use crate::topology::Wire;
use firstlight_units::{Bytes, Rate, Span};

/// A pause frame's bytes.
pub const PAUSE_FRAME: u16 = 64;
/// Bits of a quantum.
const QUANTUM: u64 = 512;
/// From a rate on, the quanta of the response time.
const RESPONSE: [(Rate, u64); 6] = [
    (Rate::from_gbps(400), 905),
    (Rate::from_gbps(100), 394),
    (Rate::from_gbps(40), 118),
    (Rate::from_gbps(25), 80),
    (Rate::from_gbps(10), 60),
    (Rate::from_gbps(1), 2),
];

/// How links are paused. What is not given follows from each link's rate and delay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema), serde(default))]
pub struct PfcConfig {
    /// The whole link is paused, by one account for all classes (802.3x).
    #[cfg_attr(feature = "spec", serde(skip))]
    pub whole_link: bool,
    /// The lossless classes; not with `pause`, which stops all.
    #[cfg_attr(feature = "spec", schemars(extend("x-without" = "all")))]
    pub classes: Option<Classes>,
    /// When a switch holds more than this number of bytes that came over a link, in a class, the sender of the link is
    /// paused.
    #[cfg_attr(
        feature = "spec",
        schemars(extend(
            "x-least" = "0B",
            "x-without" = "see `pfc.buffer`; without that, `pfc.xon` and two packets"
        ))
    )]
    pub xoff: Option<Bytes>,
    /// When the switch holds no more than this, the sender resumes.
    #[cfg_attr(feature = "spec", schemars(extend(
            "x-least" = "0B",
            "x-without" = "two packets below `pfc.xoff`; without that and `pfc.buffer`, the link's headroom"
        )))]
    pub xon: Option<Bytes>,
    /// The most bytes that a switch can hold of those that came over a link, in a class. Packets beyond this are lost.
    #[cfg_attr(
        feature = "spec",
        schemars(extend(
            "x-without" = "`pfc.xoff` and the link's headroom: the bytes that can arrive once `pfc.xoff` is exceeded"
        ))
    )]
    pub buffer: Option<Bytes>,
    /// Time from the arrival of a pause frame until the sender begins no further frame.
    #[cfg_attr(
        feature = "spec",
        schemars(extend("x-without" = "the longest that 802.3 allows: 60 quanta, 3.072us, at 10 Gb/s"))
    )]
    pub response: Option<Span>,
    /// The largest packet.
    #[cfg_attr(feature = "spec", serde(skip))]
    pub mtu: Bytes,
    /// The framing that links add to each packet.
    #[cfg_attr(feature = "spec", serde(skip))]
    pub framing: Framing,
    /// The largest number of single beginnings and ends of pauses that are recorded.
    #[cfg_attr(feature = "spec", serde(rename = "events"), schemars(range(min = 0, max = 10_000_000)))]
    pub most_events: usize,
}

impl Default for PfcConfig {
    fn default() -> Self {
        PfcConfig { most_events: 10_000, ..PfcConfig::of_all(Bytes::new(0)) }
    }
}

/// Traffic classes, a bit each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize), serde(from = "Vec<u8>", into = "Vec<u8>"))]
pub struct Classes(pub u8);

impl Classes {
    /// Whether the class `class` is lossless.
    pub const fn has(self, class: usize) -> bool {
        self.0 & (1 << class) != 0
    }

    /// The highest lossless class, if there is one.
    pub fn highest(self) -> Option<u8> {
        self.0.checked_ilog2().map(|class| class as u8)
    }
}

impl From<Vec<u8>> for Classes {
    fn from(classes: Vec<u8>) -> Self {
        Classes(classes.into_iter().fold(0, |all, class| all | 1 << class))
    }
}

impl From<Classes> for Vec<u8> {
    fn from(classes: Classes) -> Self {
        (0..8).filter(|class| classes.has(usize::from(*class))).collect()
    }
}

#[cfg(feature = "spec")]
impl schemars::JsonSchema for Classes {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Classes".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "array", "items": { "type": "integer", "minimum": 0, "maximum": 7 }, "minItems": 1,
            "examples": [[3, 4]], "x-type": "a list of traffic classes",
        })
    }
}

/// The thresholds and the buffer of one link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PfcLimits {
    /// Go on at or below.
    pub xon: Bytes,
    /// The class is paused when the account exceeds this.
    pub xoff: Bytes,
    /// Packets are lost beyond this.
    pub buffer: Bytes,
    /// Bytes that can arrive once XOFF is exceeded, the exceeding packet included.
    pub headroom: Bytes,
    /// From the reception of a pause frame until it takes effect.
    pub response: Span,
}

impl PfcLimits {
    /// Bytes that the buffer lacks to be lossless.
    pub fn missing(&self) -> Bytes {
        Bytes::new((self.xoff.get().saturating_add(self.headroom.get())).saturating_sub(self.buffer.get()))
    }
}

impl PfcConfig {
    /// PFC of all classes, for packets of at most `mtu` bytes; all thresholds follow from the links, and no pause is
    /// recorded.
    pub const fn of_all(mtu: Bytes) -> Self {
        PfcConfig {
            whole_link: false,
            classes: None,
            xoff: None,
            xon: None,
            buffer: None,
            response: None,
            mtu,
            framing: Framing::Ip,
            most_events: 0,
        }
    }

    /// The limits of a link whose data go over `there` and whose pause frames go over `back`.
    ///
    /// Without XOFF and a buffer, XON is one headroom, so that the link need not fall idle before what is let go
    /// arrives, XOFF two packets more, and the buffer another headroom. A buffer alone is divided from the top; XON is
    /// two packets below an XOFF that is given.
    pub fn limits(&self, there: Wire, back: Wire) -> PfcLimits {
        let response = self.response.unwrap_or_else(|| response_time(there.rate));
        let headroom = headroom(there, back, response, self.mtu, self.framing);
        let band = self.mtu.get().saturating_mul(2);
        let xoff = match (self.xoff, self.buffer) {
            (Some(xoff), _) => xoff.get(),
            (None, Some(buffer)) => buffer.get().saturating_sub(headroom.get()),
            (None, None) => self.xon.unwrap_or(headroom).get().saturating_add(band),
        };
        let xon = self.xon.unwrap_or(Bytes::new(xoff.saturating_sub(band)));
        let buffer = self.buffer.unwrap_or(Bytes::new(xoff.saturating_add(headroom.get())));
        PfcLimits { xon, xoff: Bytes::new(xoff), buffer, headroom, response }
    }

    /// This configuration for a link to a host whose adapter holds `buffer` in each class: its thresholds are as near
    /// below `buffer` as possible, whatever the switches' thresholds are.
    pub fn at_adapter(&self, buffer: Bytes) -> PfcConfig {
        PfcConfig { xoff: None, xon: None, buffer: Some(buffer), ..*self }
    }

    /// Whether packets of the class are lossless.
    pub fn has(&self, class: usize) -> bool {
        self.whole_link || self.classes.is_none_or(|classes| classes.has(class))
    }
}

/// The longest response time that 802.3 allows at that rate.
pub fn response_time(rate: Rate) -> Span {
    let quanta = RESPONSE.iter().find(|(from, _)| rate >= *from).map_or(1, |(_, quanta)| *quanta);
    rate.tx_time(Bytes::new(quanta * QUANTUM / 8))
}

/// Bytes that can arrive over `there` once an account has exceeded XOFF, the exceeding packet included. Framing delays
/// the pause frame; accounts count IP bytes.
pub fn headroom(there: Wire, back: Wire, response: Span, mtu: Bytes, framing: Framing) -> Bytes {
    let pause = u64::from(framing.frame_on_link(PAUSE_FRAME));
    let frames = back.rate.saturating_tx_time(Bytes::new(framing.on_link(mtu).get() + pause));
    let time = [frames, back.delay, response, there.delay].iter().map(|span| u128::from(span.as_ps())).sum::<u128>();
    let bytes = (time * u128::from(there.rate.as_bps())).div_ceil(8_000_000_000_000);
    Bytes::new(u64::try_from(bytes).unwrap_or(u64::MAX).saturating_add(2 * mtu.get()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: PfcConfig = PfcConfig::of_all(Bytes::new(1500));

    fn wire(gbps: u64, ns: u64) -> Wire {
        Wire { rate: Rate::from_gbps(gbps), delay: Span::from_ns(ns) }
    }

    /// 10 Gb/s, 500 ns each way: 3 frames, the pause frame, 1,250 bytes on the cable, 60 quanta of 64 bytes.
    #[test]
    fn headroom_by_hand() {
        let limits = CONFIG.limits(wire(10, 500), wire(10, 500));
        assert_eq!(limits.headroom.get(), 3 * 1500 + 64 + 1250 + 3840);
        assert_eq!(limits.response, Span::from_ns(3072));
        let [xon, xoff, buffer] = [limits.xon, limits.xoff, limits.buffer].map(Bytes::get);
        assert_eq!((xon, xoff, buffer), (9654, 12_654, 22_308));
        assert_eq!(limits.missing().get(), 0);
        // A slower way back: a frame and the pause frame take ten times as long.
        assert_eq!(headroom(wire(10, 0), wire(1, 0), Span::ZERO, Bytes::new(1500), Framing::Ip).get(), 3000 + 15_640);
        // Framing delays that frame by 38 bytes and the pause frame by 20.
        let framed = PfcConfig { framing: Framing::Ethernet, ..CONFIG }.limits(wire(10, 500), wire(10, 500));
        assert_eq!(framed.headroom.get(), limits.headroom.get() + 58);
    }

    #[test]
    fn what_is_given_holds_and_the_rest_follows() {
        let of = |xon: Option<u64>, xoff: Option<u64>, buffer: Option<u64>| {
            let [xon, xoff, buffer] = [xon, xoff, buffer].map(|bytes| bytes.map(Bytes::new));
            let limits = PfcConfig { xon, xoff, buffer, ..CONFIG }.limits(wire(10, 500), wire(10, 500));
            (limits.xon.get(), limits.xoff.get(), limits.buffer.get(), limits.missing().get())
        };
        assert_eq!(of(None, Some(97_000), None), (94_000, 97_000, 106_654, 0));
        assert_eq!(of(Some(80_000), Some(97_000), Some(100_000)), (80_000, 97_000, 100_000, 6654));
        assert_eq!(of(None, None, Some(100_000)), (87_346, 90_346, 100_000, 0));
        assert_eq!(of(Some(0), None, None), (0, 3000, 12_654, 0));
        assert_eq!(of(None, Some(1000), None).0, 0);
    }

    #[test]
    fn response_times_of_802_3() {
        let ns = |bps: u64| response_time(Rate::from_bps(bps)).as_ps() / 1000;
        assert_eq!(ns(100_000_000), 5120);
        assert_eq!((ns(1_000_000_000), ns(10_000_000_000)), (1024, 3072));
        assert_eq!((ns(40_000_000_000), ns(100_000_000_000), ns(25_000_000_000)), (1510, 2017, 1638));
        assert_eq!((ns(20_000_000_000), ns(400_000_000_000)), (1536, 1158));
    }
}
