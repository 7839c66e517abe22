//! Congestion control: one file per algorithm, one line per algorithm in the registry below. Names, dispatch, the
//! tables of an experiment and what Linux hosts are told derive from that line.
//!
//! A controller owns no clock and no packets. The endpoint tells it of every ACK ([`CongestionControl::on_ack`]), asks
//! it to raise the window when that is allowed ([`CongestionControl::grow`]) and what to fall to when there was
//! congestion ([`CongestionControl::ssthresh`]); how the window gets there (proportional rate reduction) is the
//! endpoint's. A controller that sets window and pace by itself is given delivery rates instead
//! ([`CongestionControl::on_delivery`]). A controller's configuration is its factory.

mod bandwidth;
mod bbr;
mod bic;
mod cdg;
mod cubic;
mod dctcp;
mod draw;
mod dx;
mod exact;
mod highspeed;
mod htcp;
mod hybla;
mod hystart;
mod illinois;
mod lp;
mod name;
mod newreno;
mod nv;
mod retcp;
mod round;
mod scalable;
#[cfg(test)]
mod suite;
mod swift;
mod timely;
mod vegas;
mod veno;
mod westwood;
mod yeah;

pub use dx::{Drain, RoundTrip};
pub use name::{CcName, ControllerConfig, LinuxControl, ModuleParameter};

use firstlight_units::{Bytes, Rate, Span, Time};

/// The congestion window, in packets as Linux counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Packets that may be in flight.
    pub cwnd: u32,
    /// Slow start below, congestion avoidance from here on.
    pub ssthresh: u32,
    /// Packets acknowledged towards the next increase of `cwnd` in congestion avoidance.
    pub credit: u32,
    /// No controller sets the threshold below this many packets, or shrinks the window below it. Swift paces below one.
    pub floor: u32,
}

impl Window {
    /// A window at the start of a connection, with Linux's floor of two packets.
    pub const fn new(initial: u32) -> Self {
        Window { cwnd: initial, ssthresh: u32::MAX, credit: 0, floor: 2 }
    }

    /// True below the threshold.
    pub const fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Slow start (RFC 5681, section 3.1, with byte counting's spirit: a packet more for each packet acknowledged), up
    /// to the threshold; returns the acknowledged packets that are left over.
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        let step = acked.min(self.ssthresh.saturating_sub(self.cwnd));
        self.cwnd += step;
        acked - step
    }

    /// One packet more for each `per` packets acknowledged. Credit from a time when more was asked for gives one
    /// packet.
    pub fn additive_increase(&mut self, per: u32, acked: u32) {
        let per = per.max(1);
        if self.credit >= per {
            self.credit = 0;
            self.cwnd += 1;
        }
        self.credit += acked;
        if self.credit >= per {
            self.cwnd += self.credit / per;
            self.credit %= per;
        }
    }
}

/// What the network interfaces' timestamps tell of one full-sized data packet and of the ACK that answers it. With t1
/// and t2 for when the packet left and came, t3 and t4 for the ACK ("Accurate Latency-based Congestion Feedback for
/// Datacenters", USENIX ATC 2015, section 2 and figure 2):
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Latency {
    /// t2 - t1 in nanoseconds: the delay of the way there, and by how much the receiver's clock is ahead, modulo 2^32.
    /// Only the difference of two of them means anything, and that is to be taken with `wrapping_sub`.
    pub one_way: i32,
    /// (t4 - t1) - (t3 - t2): the round trip without the time for which the receiver kept the ACK. Of two spans, each
    /// on one clock, so that only drift, not offset, is in it.
    pub rtt: Span,
}

/// What an ACK told the sender.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ack {
    /// The host's clock.
    pub now: Time,
    /// Packets that it newly reports as delivered, cumulatively or by SACK.
    pub delivered: u32,
    /// Packets that it acknowledges cumulatively, whether reported before by SACK or not.
    pub advanced: u32,
    /// Round-trip time of the newest packet that it acknowledges, if that was sent once.
    pub rtt: Option<Span>,
    /// Smoothed round-trip time.
    pub srtt: Option<Span>,
    /// The network's share of it, where the controller asks for timestamps and the ACK answers a full-sized packet.
    pub latency: Option<Latency>,
    /// It carried ECN-Echo.
    pub ece: bool,
    /// A reduction is under way: the endpoint moves the window to the threshold.
    pub reducing: bool,
    /// Nothing was lost or out of order before this ACK, and no reduction was under way.
    pub open: bool,
    /// Everything before this stream offset is acknowledged.
    pub una: u64,
    /// The next stream offset to be sent.
    pub next: u64,
    /// Payload of a full packet, in bytes.
    pub mss: u32,
    /// Its timestamps (RFC 7323) in milliseconds: the peer's clock, and the echo of this host's clock.
    pub timestamps: [u32; 2],
}

/// What is known when a connection is established, at the first end to send.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The host's clock.
    pub now: Time,
    /// The round-trip time of the handshake, if it is known.
    pub srtt: Option<Span>,
    /// A full-sized data packet, headers included.
    pub packet: Bytes,
    /// A number that differs between connections, for controllers that draw random numbers.
    pub seed: u64,
}

/// How fast packets were delivered, for controllers that ask for it (draft-cheng-iccrg-delivery-rate-estimation-00).
/// The sample is that of the newest packet that an ACK reports as delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Packets delivered since the connection's start.
    pub total: u64,
    /// Value of `total` when the sample's packet was sent.
    pub total_before: u64,
    /// The longer of the times in which the sample's packets were sent and acknowledged; `None` without a sample.
    pub interval: Option<Span>,
    /// The sender had too little data while the sample was taken, so that the sample may be too low.
    pub limited: bool,
    /// Packets in flight when the sample's packet had been sent, that packet included.
    pub flight_at_send: u32,
    /// Packets in flight before this ACK.
    pub flight_before: u32,
    /// Packets in flight after this ACK.
    pub in_flight: u32,
    /// Packets that were found lost at this ACK.
    pub lost: u32,
    /// Losses are being repaired: in a recovery, or after a timeout.
    pub repairing: bool,
}

/// How a controller uses ECN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EcnUse {
    /// RFC 3168 when the endpoint is told to negotiate it.
    Classic,
    /// Always negotiated; the receiver echoes each mark precisely (RFC 8257, section 3.2).
    Precise,
    /// Never negotiated: ECN-Echo means something else to this controller.
    OwnMeaning,
}

/// A congestion control algorithm.
pub trait CongestionControl {
    /// Every ACK, in every state, before the window may be raised. Most need nothing here.
    fn on_ack(&mut self, _window: &mut Window, _ack: &Ack) {}

    /// Raise the window for `ack.delivered` packets: the connection is limited by it and not reducing it.
    fn grow(&mut self, window: &mut Window, ack: &Ack);

    /// Congestion was found (loss, or a mark when `marked`): the threshold to fall to.
    fn ssthresh(&mut self, window: &Window, marked: bool) -> u32;

    /// Losses are to be repaired by a recovery. `ssthresh` was asked before, unless a reduction was under way.
    fn on_recovery(&mut self, _window: &mut Window) {}

    /// The handshake is complete.
    fn on_established(&mut self, _window: &mut Window, _start: &Start) {}

    /// What an ACK told of the delivery rate, for controllers that ask for it ([`CongestionControl::wants_delivery`]),
    /// after the endpoint has found what is lost. True: the controller has set the window, and the endpoint leaves it.
    fn on_delivery(&mut self, _window: &mut Window, _ack: &Ack, _delivery: &Delivery) -> bool {
        false
    }

    /// Whether the controller asks for a reduction such as a mark causes. Asked after each ACK.
    fn backs_off(&mut self) -> bool {
        false
    }

    /// A reduction is over, and the window has become the threshold.
    fn on_reduced(&mut self, _window: &mut Window) {}

    /// The retransmission timer expired; `ssthresh` was asked before.
    fn on_timeout(&mut self, _window: &mut Window) {}

    /// It expired once more, with no ACK in between and without a question.
    fn on_repeated_timeout(&mut self) {}

    /// The reduction was spurious: the window to go back to, given the one before it.
    fn undo(&mut self, window: &Window, prior_cwnd: u32) -> u32 {
        window.cwnd.max(prior_cwnd)
    }

    /// How it uses ECN.
    fn ecn(&self) -> EcnUse {
        EcnUse::Classic
    }

    /// Whether its packets carry timestamps of the network interfaces ([`Ack::latency`]), which take 16 bytes of each.
    fn wants_stamps(&self) -> bool {
        false
    }

    /// Whether it is told of delivery rates ([`CongestionControl::on_delivery`]); each packet in flight then has a
    /// record.
    fn wants_delivery(&self) -> bool {
        false
    }

    /// A data packet of so many bytes, headers included, leaves now: how long the next one has to wait from here. Zero:
    /// only the window holds it back.
    fn pace(&mut self, _bytes: Bytes) -> Span {
        Span::ZERO
    }

    /// Bytes that may leave at once where packets are paced; the next burst waits for all of them.
    fn burst(&self) -> Bytes {
        Bytes::new(0)
    }
}

/// Declares the algorithms: the module, which has the name that users write, the controller, its configuration.
macro_rules! registry {
    ($($module:ident: $Controller:ident, $Config:ident;)*) => {
        $(pub use $module::{$Controller, $Config};)*

        /// The configuration of a congestion controller, and the factory of its controllers.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum CcConfig {
            $(#[doc = concat!("The controller `", stringify!($module), "`.")] $Controller($Config),)*
        }

        /// The parameters of all controllers: a table of the experiment for each.
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        #[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
        #[cfg_attr(feature = "spec", serde(default))]
        #[expect(missing_docs, reason = "the type of a table says what the table is")]
        pub struct CcTables {
            $(
                #[cfg_attr(feature = "spec", schemars(extend("x-when" = concat!("uses ", stringify!($module)))))]
                pub $module: $Config,
            )*
        }

        impl CcTables {
            /// The controller that simulated hosts have under that name, on a host whose link has `rate` by the host's
            /// own clock and takes packets of up to `mtu`.
            pub fn config(&self, name: CcName, rate: Rate, mtu: Bytes) -> Option<CcConfig> {
                let name = name.simulated()?;
                $(if name == stringify!($module) {
                    return Some(CcConfig::$Controller(self.$module.on_link(rate, mtu)));
                })*
                None
            }

            /// What the controller that Linux calls `name` needs of a kernel; `None` if the controller has no table
            /// here.
            pub fn linux(&self, name: &str) -> Option<LinuxControl> {
                $(if $Config::LINUX == Some(name) {
                    return Some(LinuxControl {
                        table: stringify!($module),
                        module: $Config::MODULE,
                        sysctls: $Config::SYSCTLS,
                        parameters: self.$module.parameters(),
                    });
                })*
                None
            }
        }

        impl CcConfig {
            /// The names of all controllers.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($module)),*];

            /// The controller of that name with its default parameters.
            pub fn from_name(name: &str) -> Option<Self> {
                $(if name == stringify!($module) {
                    return Some(CcConfig::$Controller($Config::default()));
                })*
                None
            }

            /// What Linux calls the controller of that name; `None` where no kernel has it.
            pub(crate) fn linux_name(name: &str) -> Option<&'static str> {
                $(if name == stringify!($module) {
                    return $Config::LINUX;
                })*
                None
            }

            /// The name by which users know it.
            pub const fn name(&self) -> &'static str {
                match self { $(CcConfig::$Controller(_) => stringify!($module),)* }
            }

            /// How the controller uses ECN.
            pub fn ecn(&self) -> EcnUse {
                self.build(Span::ZERO).ecn()
            }

            /// A new controller for one connection on a host whose clock has this tick.
            pub(crate) fn build(&self, tick: Span) -> Controller {
                match self {
                    $(CcConfig::$Controller(config) => Controller::$Controller($Controller::new(*config, tick)),)*
                }
            }
        }

        /// One connection's controller. An enum and not a trait object: it lies in the connection's own memory.
        #[derive(Clone, Debug)]
        pub(crate) enum Controller {
            $($Controller($Controller),)*
        }

        impl CongestionControl for Controller {
            #[inline]
            fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
                match self { $(Controller::$Controller(c) => c.on_ack(window, ack),)* }
            }
            #[inline]
            fn grow(&mut self, window: &mut Window, ack: &Ack) {
                match self { $(Controller::$Controller(c) => c.grow(window, ack),)* }
            }
            fn ssthresh(&mut self, window: &Window, marked: bool) -> u32 {
                match self { $(Controller::$Controller(c) => c.ssthresh(window, marked),)* }
            }
            fn on_recovery(&mut self, window: &mut Window) {
                match self { $(Controller::$Controller(c) => c.on_recovery(window),)* }
            }
            fn on_established(&mut self, window: &mut Window, start: &Start) {
                match self { $(Controller::$Controller(c) => c.on_established(window, start),)* }
            }
            fn on_delivery(&mut self, window: &mut Window, ack: &Ack, delivery: &Delivery) -> bool {
                match self { $(Controller::$Controller(c) => c.on_delivery(window, ack, delivery),)* }
            }
            #[inline]
            fn backs_off(&mut self) -> bool {
                match self { $(Controller::$Controller(c) => c.backs_off(),)* }
            }
            fn on_reduced(&mut self, window: &mut Window) {
                match self { $(Controller::$Controller(c) => c.on_reduced(window),)* }
            }
            fn on_timeout(&mut self, window: &mut Window) {
                match self { $(Controller::$Controller(c) => c.on_timeout(window),)* }
            }
            fn on_repeated_timeout(&mut self) {
                match self { $(Controller::$Controller(c) => c.on_repeated_timeout(),)* }
            }
            fn undo(&mut self, window: &Window, prior_cwnd: u32) -> u32 {
                match self { $(Controller::$Controller(c) => c.undo(window, prior_cwnd),)* }
            }
            fn ecn(&self) -> EcnUse {
                match self { $(Controller::$Controller(c) => c.ecn(),)* }
            }
            fn wants_stamps(&self) -> bool {
                match self { $(Controller::$Controller(c) => c.wants_stamps(),)* }
            }
            fn wants_delivery(&self) -> bool {
                match self { $(Controller::$Controller(c) => c.wants_delivery(),)* }
            }
            #[inline]
            fn pace(&mut self, bytes: Bytes) -> Span {
                match self { $(Controller::$Controller(c) => c.pace(bytes),)* }
            }
            fn burst(&self) -> Bytes {
                match self { $(Controller::$Controller(c) => CongestionControl::burst(c),)* }
            }
        }
    };
}

registry! {
    newreno: NewReno, NewRenoConfig;
    cubic: Cubic, CubicConfig;
    dctcp: Dctcp, DctcpConfig;
    retcp: ReTcp, ReTcpConfig;
    dx: Dx, DxConfig;
    vegas: Vegas, VegasConfig;
    timely: Timely, TimelyConfig;
    swift: Swift, SwiftConfig;
    bbr: Bbr, BbrConfig;
    bic: Bic, BicConfig;
    cdg: Cdg, CdgConfig;
    highspeed: HighSpeed, HighSpeedConfig;
    htcp: Htcp, HtcpConfig;
    hybla: Hybla, HyblaConfig;
    illinois: Illinois, IllinoisConfig;
    lp: Lp, LpConfig;
    nv: Nv, NvConfig;
    scalable: Scalable, ScalableConfig;
    veno: Veno, VenoConfig;
    westwood: Westwood, WestwoodConfig;
    yeah: Yeah, YeahConfig;
}

/// Other names that experiments may write: Linux calls `newreno` by the name `reno`.
const ALIASES: &[&str] = &["reno"];
