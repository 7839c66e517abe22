//! Probes: single packets at a constant rate, without TCP.

use super::datagrams::{Datagrams, Probe};
use super::{Common, Expansion, SharedKeys, Workload};
use crate::error::Problem;
use crate::expander::Expander;
use crate::host_kind::{DefaultHosts, HostKind};
use crate::host_name::HostName;
use firstlight_units::{Bytes, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Size of a packet where none is given.
const PACKET: Bytes = Bytes::new(64);

/// Single packets at a constant rate, without TCP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeWorkload {
    /// Keys that every workload has.
    #[serde(flatten)]
    pub common: Common,
    /// Senders: `host3`, `rack0.host3`, `rack0` or `all`.
    #[serde(default = "HostName::all")]
    pub from: HostName,
    /// Receivers, as for `[[flows]]`.
    #[schemars(extend("examples" = ["host0"]))]
    pub to: HostName,
    /// The kind of both ends' hosts: whose UDP they run.
    #[schemars(extend("x-without" = "`hosts.kind`; `simulated` where that is `dilated`"))]
    pub hosts: Option<HostKind>,
    /// Time from packet to packet.
    #[schemars(extend("x-above" = "0s", "x-without" = "see `rate`"))]
    pub interval: Option<Span>,
    /// The packets' rate, IP headers included; instead of `interval`.
    #[schemars(extend("x-without" = "see `interval`"))]
    pub rate: Option<Rate>,
    /// How many packets for each pair of hosts.
    #[schemars(range(min = 1, max = 1_000_000), extend("x-of" = "packets", "x-without" = "until the run's end"))]
    pub count: Option<u64>,
    /// What the packets are like.
    #[serde(flatten)]
    pub datagrams: Datagrams,
}

impl Workload for ProbeWorkload {
    fn keys(&self) -> &dyn SharedKeys {
        &self.common
    }

    fn packet(&self) -> Option<Bytes> {
        self.datagrams.packet
    }

    /// A probe for each pair of hosts.
    fn expand(&self, expander: &Expander<'_>) -> Result<Expansion, Box<Problem>> {
        let pairs = expander.pairs(self.from, self.to)?;
        let packet = self.datagrams.packet.unwrap_or(PACKET);
        let interval = match (self.interval, self.rate) {
            (Some(_), Some(_)) => {
                return Err(expander.problem("rate", "interval and rate exclude each other: keep one"));
            }
            (Some(interval), None) => ("interval", interval),
            (None, Some(rate)) => ("rate", rate.tx_time(packet)),
            (None, None) => return Err(expander.missing("interval", "\"1ms\"")),
        };
        let hosts = self.kind(expander.experiment.hosts.kind);
        if hosts == HostKind::Linux {
            self.check_linux(expander)?;
        }
        let one = Probe::new(expander, &self.common, &pairs, packet, interval, self.datagrams.send_buffer)?;
        let probes = pairs.iter().map(|pair| Probe { count: self.count, hosts, ..one.between(*pair) }).collect();
        Ok(Expansion { probes, ..Expansion::default() })
    }
}

impl ProbeWorkload {
    /// The kind of the hosts, where this is the experiment's.
    pub(crate) fn kind(&self, default: DefaultHosts) -> HostKind {
        self.hosts.unwrap_or(if default == DefaultHosts::Linux { HostKind::Linux } else { HostKind::Simulated })
    }

    /// Whether the kind of the hosts is the experiment's.
    pub(crate) fn is_of_default(&self, default: DefaultHosts) -> bool {
        self.hosts.is_none() && default != DefaultHosts::Dilated
    }

    /// Refuses what Linux hosts cannot do.
    fn check_linux(&self, expander: &Expander<'_>) -> Result<(), Box<Problem>> {
        if expander.experiment.hosts.kind == DefaultHosts::Dilated {
            let text = "hosts in dilated time send no probes: take it out, or use Linux hosts in virtual time \
                        (hosts.kind = \"linux\")";
            return Err(expander.problem("hosts", text));
        }
        if self.datagrams.send_buffer.is_some() {
            let text = "a Linux kernel has no such setting: its buffer counts packets' memory too; take it out";
            return Err(expander.problem("send_buffer", text));
        }
        Ok(())
    }
}
