//! `[hosts]`: the links of hosts, and what is between their TCP and their links.

use crate::host_kind::{DefaultHosts, HostKind};
use firstlight_net::Framing;
use firstlight_net::interface::ClockConfig;
use firstlight_transport::cc::CcName;
use firstlight_units::{Bytes, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The hosts' links, and what may pass them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HostsTable {
    /// The kind of hosts of flows, probes and programs that name none: whose TCP and UDP they run.
    #[schemars(extend("x-when" = "default hosts"))]
    pub kind: DefaultHosts,
    /// Rate of each host's link.
    #[schemars(extend("x-when" = "regular fabric", "x-needed" = true))]
    pub rate: Option<Rate>,
    /// Rate of each host's link in the direction to the host.
    #[schemars(extend("x-when" = "regular fabric", "x-without" = "the same as `hosts.rate`"))]
    pub receive_rate: Option<Rate>,
    /// Propagation delay of each host's link.
    #[schemars(extend("x-when" = "regular fabric"))]
    pub delay: Span,
    /// How long a packet takes through the sending host's stack.
    pub send_delay: Span,
    /// How long a packet takes through the receiving host's stack.
    pub receive_delay: Span,
    /// A random delay of each packet in the sending host's stack, and another in the receiving host's, beside the
    /// constant ones. No packet overtakes another of its host and direction.
    pub jitter: Option<JitterTable>,
    /// The framing that every link of the network adds to each IP packet: none, or Ethernet's 38 bytes (header 14,
    /// checksum 4, preamble 8, gap 12).
    pub framing: Framing,
    /// Largest IP packet, without framing.
    #[schemars(extend("x-least" = "100B", "x-most" = "65535B"))]
    pub mtu: Bytes,
    /// Probability that a packet is lost on its way into the network (fault injection); less than 1. Each host draws
    /// from a random stream of its own.
    #[schemars(range(min = 0, max = 1))]
    pub loss: f64,
    /// Each host's clock, by which its interface stamps packets, is off by up to this at the start, to either side.
    pub clock_offset: Span,
    /// Each host's clock goes too fast or too slow by up to this many millionths; 40 are 40 ns per ms.
    #[schemars(range(min = 0, max = 1000))]
    pub clock_drift_ppm: f64,
    /// Processors that all programs of a host in dilated time may use together, in the host's own time: 1 is one whole
    /// processor of the machine at `time_scale` = 1, and a twentieth of one at 20. Without it the hosts share the
    /// machine's processors equally.
    #[schemars(range(min = 0.001, max = 1024), extend("x-when" = "dilated hosts"))]
    pub cores: Option<f64>,
    #[expect(missing_docs, reason = "the type of a table says what the table is")]
    #[schemars(extend("x-when" = "packet fabric"))]
    pub classes: Vec<HostClassTable>,
}

/// The traffic class (DSCP) that hosts give to connections of a congestion control, so that switches can keep
/// controllers apart. A `class` of a flow or a workload takes precedence; controllers without an entry have class 0. On
/// Linux hosts the TCP of programs has the class of its own host's controller.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostClassTable {
    /// The congestion control.
    pub cc: CcName,
    /// The class of its packets: one of `[[switch.classes]]`.
    #[schemars(range(min = 0, max = 7))]
    pub class: u8,
}

/// The distribution of a random delay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum JitterTable {
    /// Delays are spread evenly.
    Uniform {
        /// The longest delay; the shortest is zero.
        #[schemars(extend("x-above" = "0s"))]
        most: Span,
    },
    /// Delays are exponential.
    Exponential {
        /// Mean of the delays.
        #[schemars(extend("x-above" = "0s"))]
        mean: Span,
    },
    /// Delays are log-normal.
    LogNormal {
        /// Mean of the delays.
        #[schemars(extend("x-above" = "0s"))]
        mean: Span,
        /// Standard deviation of the delays.
        #[schemars(extend("x-above" = "0s"))]
        deviation: Span,
    },
    /// Delays have a cumulative distribution from a file.
    File {
        /// The distribution's file. Each line has a delay in units, and the part of the packets whose delay is not
        /// longer, in percent or as a probability; between two lines delays are spread evenly.
        file: String,
        /// The unit of the file's delays.
        #[serde(default = "nanosecond")]
        #[schemars(extend("x-above" = "0s"))]
        unit: Span,
    },
}

fn nanosecond() -> Span {
    Span::from_ns(1)
}

impl Default for HostsTable {
    fn default() -> Self {
        let ClockConfig { offset, drift } = ClockConfig::default();
        HostsTable {
            kind: DefaultHosts::Simulated,
            rate: None,
            receive_rate: None,
            delay: Span::ZERO,
            send_delay: Span::ZERO,
            receive_delay: Span::ZERO,
            jitter: None,
            framing: Framing::Ip,
            mtu: Bytes::new(9000),
            loss: 0.0,
            clock_offset: offset,
            clock_drift_ppm: f64::from(drift) / 1000.0,
            cores: None,
            classes: vec![],
        }
    }
}

impl HostsTable {
    /// The MTU in bytes.
    pub(crate) fn mtu(&self) -> u16 {
        u16::try_from(self.mtu.get()).expect("the schema bounds the MTU")
    }

    /// Bytes of a link that the largest packet takes.
    pub(crate) fn packet_on_link(&self) -> Bytes {
        self.framing.on_link(self.mtu)
    }

    /// The traffic class of a congestion control, by its name on hosts of that kind.
    pub(crate) fn class_of(&self, cc: &str, hosts: HostKind) -> u8 {
        let is_of = |entry: &&HostClassTable| match hosts {
            HostKind::Simulated => entry.cc.simulated().unwrap_or(entry.cc.as_str()) == cc,
            HostKind::Linux => entry.cc.linux() == Some(cc),
        };
        self.classes.iter().find(is_of).map_or(0, |entry| entry.class)
    }

    /// The ranges that the hosts' clocks are drawn from.
    pub(crate) fn clock(&self) -> ClockConfig {
        ClockConfig { offset: self.clock_offset, drift: (self.clock_drift_ppm * 1000.0).round() as u32 }
    }
}
