//! Congestion control: one file per algorithm, one line per algorithm in the registry below. Names, dispatch, the
//! tables of an experiment and the settings of Linux hosts derive from that line. A controller's configuration is its
//! factory. Crate `cc` has the trait that a controller implements ([`CongestionControl`]); module `own` runs users'
//! controllers.

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
mod long_term;
mod lp;
mod name;
mod newreno;
mod nv;
mod own;
mod retcp;
mod round;
mod scalable;
#[cfg(any(test, feature = "suite"))]
pub mod suite;
mod swift;
mod timely;
mod vegas;
mod veno;
mod westwood;
mod yeah;

pub use dx::{Drain, RoundTrip, SlowStart};
pub use name::{CcName, ControllerConfig, LinuxControl, ModuleParameter};
pub use own::{OwnConfig, OwnController, OwnFactory};

pub use firstlight_cc::event::{Event, Properties, call};
pub use firstlight_cc::{Ack, CongestionControl, Delivery, EcnUse, Latency, Start, Window};

use firstlight_units::{Bytes, Rate, Span, Time};

/// Declares the algorithms: the module, which has the name that users write, the controller, its configuration.
macro_rules! registry {
    ($($module:ident: $Controller:ident, $Config:ident;)*) => {
        $(pub use $module::{$Controller, $Config};)*

        /// The configuration of a congestion controller, and the factory of its controllers.
        #[derive(Clone, Debug, PartialEq)]
        pub enum CcConfig {
            /// A user's own controller.
            Own(OwnConfig),
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

            /// The parameters on a host whose link has `rate` by the host's own clock and takes packets of up to `mtu`.
            #[must_use]
            pub fn on_link(&self, rate: Rate, mtu: Bytes) -> Self {
                CcTables { $($module: self.$module.on_link(rate, mtu)),* }
            }

            /// The needs, on a kernel, of the controller that Linux calls `name`; `None` if the controller has no table
            /// here.
            pub fn linux(&self, name: &str) -> Option<LinuxControl> {
                $(if $Config::LINUX == Some(name) {
                    return Some(LinuxControl {
                        table: stringify!($module),
                        module: $Config::MODULE,
                        needs_our_kernel: $Config::NEEDS_OUR_KERNEL,
                        takes_min_window: $Config::TAKES_MIN_WINDOW,
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

            /// The controllers whose least window is `tcp.min_window` on Linux hosts too.
            pub fn taking_min_window() -> Vec<&'static str> {
                let all = [$((stringify!($module), $Config::TAKES_MIN_WINDOW)),*];
                all.iter().filter(|(_, takes)| *takes).map(|(name, _)| *name).collect()
            }

            /// Linux's name of the controller; `None` where no kernel has it.
            pub(crate) fn linux_name(name: &str) -> Option<&'static str> {
                $(if name == stringify!($module) {
                    return $Config::LINUX;
                })*
                None
            }

            /// The name by which users know it.
            pub fn name(&self) -> &'static str {
                match self {
                    CcConfig::Own(own) => own.name(),
                    $(CcConfig::$Controller(_) => stringify!($module),)*
                }
            }

            /// How the controller uses ECN.
            pub fn ecn(&self) -> EcnUse {
                match self {
                    CcConfig::Own(own) => own.ecn(),
                    $(CcConfig::$Controller(config) => $Controller::new(*config, Span::ZERO).ecn(),)*
                }
            }

            /// Whether it has a floor of its own, so that `tcp.min_window` has no effect on it.
            pub fn has_own_floor(&self) -> bool {
                match self {
                    CcConfig::Own(_) => false,
                    $(CcConfig::$Controller(_) => $Config::HAS_OWN_FLOOR,)*
                }
            }

            /// A new controller for one connection on a host whose clock has this tick.
            pub(crate) fn build(&self, tick: Span) -> Controller {
                match self {
                    CcConfig::Own(own) => Controller::Own(own.build()),
                    $(CcConfig::$Controller(config) => Controller::$Controller($Controller::new(*config, tick)),)*
                }
            }
        }

        /// One connection's controller. An enum and not a trait object: it lies in the connection's own memory.
        #[derive(Debug)]
        pub(crate) enum Controller {
            Own(own::Own),
            $($Controller($Controller),)*
        }

        impl CongestionControl for Controller {
            #[inline]
            fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
                match self {
                    Controller::Own(c) => c.on_ack(window, ack),
                    $(Controller::$Controller(c) => c.on_ack(window, ack),)*
                }
            }
            fn on_circuit(&mut self, window: &mut Window, up: bool, reducing: bool) {
                match self {
                    Controller::Own(c) => c.on_circuit(window, up, reducing),
                    $(Controller::$Controller(c) => c.on_circuit(window, up, reducing),)*
                }
            }
            #[inline]
            fn grow(&mut self, window: &mut Window, ack: &Ack) {
                match self {
                    Controller::Own(c) => c.grow(window, ack),
                    $(Controller::$Controller(c) => c.grow(window, ack),)*
                }
            }
            fn on_unfilled(&mut self, window: &mut Window, ack: &Ack) {
                match self {
                    Controller::Own(c) => c.on_unfilled(window, ack),
                    $(Controller::$Controller(c) => c.on_unfilled(window, ack),)*
                }
            }
            fn ssthresh(&mut self, window: &Window, marked: bool) -> u32 {
                match self {
                    Controller::Own(c) => c.ssthresh(window, marked),
                    $(Controller::$Controller(c) => c.ssthresh(window, marked),)*
                }
            }
            fn on_recovery(&mut self, window: &mut Window) {
                match self {
                    Controller::Own(c) => c.on_recovery(window),
                    $(Controller::$Controller(c) => c.on_recovery(window),)*
                }
            }
            fn on_established(&mut self, window: &mut Window, start: &Start) {
                match self {
                    Controller::Own(c) => c.on_established(window, start),
                    $(Controller::$Controller(c) => c.on_established(window, start),)*
                }
            }
            fn on_delivery(&mut self, window: &mut Window, ack: &Ack, delivery: &Delivery) -> bool {
                match self {
                    Controller::Own(c) => c.on_delivery(window, ack, delivery),
                    $(Controller::$Controller(c) => c.on_delivery(window, ack, delivery),)*
                }
            }
            #[inline]
            fn backs_off(&mut self) -> bool {
                match self {
                    Controller::Own(c) => c.backs_off(),
                    $(Controller::$Controller(c) => c.backs_off(),)*
                }
            }
            fn on_reduced(&mut self, window: &mut Window) {
                match self {
                    Controller::Own(c) => c.on_reduced(window),
                    $(Controller::$Controller(c) => c.on_reduced(window),)*
                }
            }
            fn on_resume(&mut self, now: Time, last_sent: Time, next: u64) {
                match self {
                    Controller::Own(c) => c.on_resume(now, last_sent, next),
                    $(Controller::$Controller(c) => c.on_resume(now, last_sent, next),)*
                }
            }
            fn on_state(&mut self, open: bool, next: u64) {
                match self {
                    Controller::Own(c) => c.on_state(open, next),
                    $(Controller::$Controller(c) => c.on_state(open, next),)*
                }
            }
            fn on_timeout(&mut self, window: &mut Window) {
                match self {
                    Controller::Own(c) => c.on_timeout(window),
                    $(Controller::$Controller(c) => c.on_timeout(window),)*
                }
            }
            fn on_timeout_in_reduction(&mut self) {
                match self {
                    Controller::Own(c) => c.on_timeout_in_reduction(),
                    $(Controller::$Controller(c) => c.on_timeout_in_reduction(),)*
                }
            }
            fn undo(&mut self, window: &Window, prior_cwnd: u32) -> u32 {
                match self {
                    Controller::Own(c) => c.undo(window, prior_cwnd),
                    $(Controller::$Controller(c) => c.undo(window, prior_cwnd),)*
                }
            }
            fn ecn(&self) -> EcnUse {
                match self {
                    Controller::Own(c) => c.ecn(),
                    $(Controller::$Controller(c) => c.ecn(),)*
                }
            }
            fn wants_stamps(&self) -> bool {
                match self {
                    Controller::Own(c) => c.wants_stamps(),
                    $(Controller::$Controller(c) => c.wants_stamps(),)*
                }
            }
            fn wants_delivery(&self) -> bool {
                match self {
                    Controller::Own(c) => c.wants_delivery(),
                    $(Controller::$Controller(c) => c.wants_delivery(),)*
                }
            }
            #[inline(always)]
            fn pace(&mut self, bytes: Bytes) -> Span {
                match self {
                    Controller::Own(c) => c.pace(bytes),
                    $(Controller::$Controller(c) => c.pace(bytes),)*
                }
            }
            fn packets_per_second(&self) -> Option<f64> {
                match self {
                    Controller::Own(c) => c.packets_per_second(),
                    $(Controller::$Controller(c) => c.packets_per_second(),)*
                }
            }
            fn burst(&self) -> Bytes {
                match self {
                    Controller::Own(c) => c.burst(),
                    $(Controller::$Controller(c) => CongestionControl::burst(c),)*
                }
            }
            fn makes_up(&self) -> bool {
                match self {
                    Controller::Own(c) => c.makes_up(),
                    $(Controller::$Controller(c) => c.makes_up(),)*
                }
            }
            fn windows_buffered(&self) -> u64 {
                match self {
                    Controller::Own(c) => c.windows_buffered(),
                    $(Controller::$Controller(c) => c.windows_buffered(),)*
                }
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
