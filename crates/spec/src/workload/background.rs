//! Background: each host sends so much to a random other host, over TCP, or, with a rate, as datagrams at that rate.

use super::datagrams::Datagrams;
use super::{Expansion, FlowKeys, SharedKeys, Workload, at_once};
use crate::error::Problem;
use crate::expander::{Expander, HostPair};
use crate::host_name::HostName;
use crate::tables::Connections;
use firstlight_net::uniform;
use firstlight_units::{Bytes, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Each host sends `size` to a random host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Background {
    /// Keys of every workload of flows.
    #[serde(flatten)]
    pub shared: FlowKeys,
    /// Senders: `host3`, `rack0.host3`, `rack0` or `all`.
    #[serde(default = "HostName::all")]
    pub from: HostName,
    /// Receivers, in the same form. Every other host is as likely.
    #[serde(default = "HostName::all")]
    pub to: HostName,
    /// How much each host sends.
    pub size: Bytes,
    /// Each flow starts at random within this span after its time.
    #[schemars(extend("x-without" = "`0s`"))]
    pub jitter: Option<Span>,
    /// Send datagrams at this rate, instead of TCP.
    #[schemars(extend("x-without" = "TCP"))]
    pub rate: Option<Rate>,
    /// What datagrams are like.
    #[serde(flatten)]
    pub datagrams: Datagrams,
}

impl Workload for Background {
    fn keys(&self) -> &dyn SharedKeys {
        if self.rate.is_some() { &self.shared.common } else { &self.shared }
    }

    fn packet(&self) -> Option<Bytes> {
        self.datagrams.packet
    }

    fn expand(&self, expander: &Expander<'_>) -> Result<Expansion, Box<Problem>> {
        let pairs = self.pairs(expander)?;
        let Some(rate) = self.rate else {
            if let Some(key) = self.datagrams.given() {
                return Err(expander.problem(key, "has no effect on TCP: take it out, or add rate for datagrams"));
            }
            let jitter = self.jitter.unwrap_or(Span::ZERO);
            return at_once(expander, &self.shared, jitter, Some(self.size), &pairs);
        };
        let Connections { hosts, cc } = self.shared.connections;
        let of_tcp = [("cc", cc.is_some()), ("hosts", hosts.is_some()), ("jitter", self.jitter.is_some())];
        if let Some((key, _)) = of_tcp.into_iter().find(|(_, given)| *given) {
            return Err(expander.problem(key, "has no effect on datagrams: take it out, or take out rate"));
        }
        let probes = self.datagrams.of_size(expander, &self.shared.common, &pairs, rate, self.size)?;
        Ok(Expansion { probes, ..Expansion::default() })
    }
}

impl Background {
    /// Each sender with a receiver, all others being as likely.
    fn pairs(&self, expander: &Expander<'_>) -> Result<Vec<HostPair>, Box<Problem>> {
        let (from, to) = (expander.hosts("from", self.from)?, expander.hosts("to", self.to)?);
        let mut random = expander.random("destinations");
        let mut draw = |src: usize| {
            let others: Vec<usize> = to.iter().copied().filter(|dst| *dst != src).collect();
            if others.is_empty() {
                return Err(expander.problem("to", "a sender would send to itself: name other hosts"));
            }
            Ok((src, others[uniform(&mut random, others.len() as u64) as usize]))
        };
        from.into_iter().map(&mut draw).collect()
    }
}
