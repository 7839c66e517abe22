//! csg-htsim's `.topo` files (Broadcom's csg-htsim and its descendants): trees of two or three tiers.
//!
//! ```text
//! Nodes 432                    hosts in all
//! Tiers 3
//! Podsize 36                   hosts of a pod
//! Tier 0                       ToR switches; tier 1: aggregation, tier 2: core
//! Downlink_speed_Gbps 100      links to the tier below (tier 0: to hosts)
//! Downlink_Latency_ns 1000
//! Radix_Down 6                 ports downward
//! Radix_Up 6                   ports upward; not in the top tier
//! Bundle 1                     parallel links to each switch of the tier below
//! Oversubscribed 1             capacity downward over capacity upward
//! Switch_Latency_ns 0
//! Queue_Up 100000              bytes, also Queue_Down
//! ```
//!
//! Keys are read in either case; `#` begins a comment. The radices define the tree; a file with contradictory counts is
//! refused. A switch latency becomes propagation delay of each link into a switch of the tier, which delays packets the
//! same. Queue sizes are keys of an experiment here, not of a network: a note names them. So it does for keys that
//! htsim reads without effect.

mod keys;

use super::Imported;
use crate::ImportError;
use firstlight_net::topology::{Cable, Tree, TreeCables, Wire};
use firstlight_units::{Rate, Span};
use keys::{Header, Sections, TopoKey, TopoSetting};

/// Reads a network; `file` is its name for errors.
///
/// # Errors
/// At the first line that is wrong, or at the value that contradicts others.
pub fn htsim(file: &str, text: &str) -> Result<Imported, ImportError> {
    let Sections { header, tiers } = keys::read(file, text)?;
    let mut notes = Vec::new();
    let tree = TreeShape { header, tiers: &tiers }.tree(&mut notes)?;
    let topology = tree.build().map_err(|error| header.nodes.error(error.to_string()))?;
    let host_numbers = (0..topology.hosts() as u32).collect();
    Ok(Imported { topology, host_numbers, notes })
}

/// The settings of a file while they are checked against each other.
struct TreeShape<'a> {
    header: Header<'a>,
    tiers: &'a [keys::Tier<'a>],
}

impl TreeShape<'_> {
    fn tree(&self, notes: &mut Vec<String>) -> Result<Tree, ImportError> {
        let Header { nodes, podsize, .. } = self.header;
        if nodes.count % podsize.count != 0 {
            return Err(podsize.error(format!("Podsize must divide the {} Nodes evenly", nodes.count)));
        }
        let pods = nodes.count / podsize.count;
        if self.tiers.len() == 2 && pods != 1 {
            return Err(podsize.error(format!("two tiers are one pod: write Podsize {}", nodes.count)));
        }
        let hosts = self.count(0, TopoKey::RadixDown)?;
        if podsize.count % hosts.count != 0 {
            return Err(hosts.error(format!("Radix_Down of tier 0 must divide the Podsize of {}", podsize.count)));
        }
        let tors = podsize.count / hosts.count;
        let (aggregations, bundle) = self.pod(tors)?;
        let (cores, uplinks, core_bundle) =
            if self.tiers.len() == 3 { self.cores(pods, aggregations)? } else { (0, 0, 1) };
        self.check_oversubscription(notes)?;
        self.note_what_is_not_modelled(notes);
        Ok(Tree {
            pods,
            tors,
            hosts: hosts.count,
            aggregations,
            cores,
            uplinks,
            bundles: [bundle, core_bundle],
            cables: self.cables()?,
            names: ["tor", "agg", "core"],
        })
    }

    /// How many aggregation switches a pod has, and how many links each has to a ToR switch.
    fn pod(&self, tors: u32) -> Result<(u32, u32), ImportError> {
        if let Some(bundle) = self.tiers[0].get(TopoKey::Bundle)
            && bundle.count != 1
        {
            return Err(bundle.error("hosts have one link: leave Bundle out of tier 0, or write 1"));
        }
        let bundle = self.bundle(1);
        let (up, down) = (self.count(0, TopoKey::RadixUp)?, self.count(1, TopoKey::RadixDown)?);
        if up.count % bundle != 0 {
            return Err(
                up.error(format!("Radix_Up of tier 0 must be a multiple of tier 1's Bundle, which is {bundle}"))
            );
        }
        let right = u64::from(tors) * u64::from(bundle);
        if u64::from(down.count) != right {
            return Err(down.error(format!(
                "Radix_Down of tier 1 is {}, and a pod has {tors} ToR switches with a Bundle of {bundle}: write \
                 {right}",
                down.count
            )));
        }
        Ok((up.count / bundle, bundle))
    }

    /// How many core switches there are, how many an aggregation switch is linked with, and links of each such pair.
    fn cores(&self, pods: u32, aggregations: u32) -> Result<(u32, u32, u32), ImportError> {
        let bundle = self.bundle(2);
        let (up, down) = (self.count(1, TopoKey::RadixUp)?, self.count(2, TopoKey::RadixDown)?);
        if up.count % bundle != 0 {
            return Err(
                up.error(format!("Radix_Up of tier 1 must be a multiple of tier 2's Bundle, which is {bundle}"))
            );
        }
        let right = u64::from(pods) * u64::from(bundle);
        if u64::from(down.count) != right {
            return Err(down.error(format!(
                "Radix_Down of tier 2 is {}, and there are {pods} pods with a Bundle of {bundle}: write {right}",
                down.count
            )));
        }
        let uplinks = up.count / bundle;
        let cores = uplinks.checked_mul(aggregations).ok_or_else(|| up.error("these are too many uplinks"))?;
        Ok((cores, uplinks, bundle))
    }

    /// Checks that `Oversubscribed` agrees with radices and speeds.
    fn check_oversubscription(&self, notes: &mut Vec<String>) -> Result<(), ImportError> {
        for (i, tier) in self.tiers.iter().enumerate() {
            let Some(given) = tier.get(TopoKey::Oversubscribed) else { continue };
            if i + 1 == self.tiers.len() {
                notes.push(given.place.note("Oversubscribed has no meaning in the top tier and is not read"));
                continue;
            }
            let capacity = |radix: TopoSetting, rate: Rate| u128::from(radix.count) * u128::from(rate.as_bps());
            let down = capacity(self.count(i, TopoKey::RadixDown)?, self.rate(i)?);
            let up = capacity(self.count(i, TopoKey::RadixUp)?, self.rate(i + 1)?);
            if down != up * u128::from(given.count) {
                let ratio = down as f64 / up as f64;
                return Err(given.error(format!(
                    "tier {i} is not {}:1 oversubscribed: its radices and link speeds give {ratio}:1",
                    given.count
                )));
            }
        }
        Ok(())
    }

    fn note_what_is_not_modelled(&self, notes: &mut Vec<String>) {
        for (i, tier) in self.tiers.iter().enumerate() {
            for key in [TopoKey::QueueUp, TopoKey::QueueDown] {
                if let Some(queue) = tier.get(key) {
                    let name = key.name();
                    notes.push(
                        queue
                            .place
                            .note(format!("{name} of {} bytes is ignored: set queues in the experiment", queue.count)),
                    );
                }
            }
            if let Some(latency) = tier.get(TopoKey::SwitchLatency).filter(|latency| !latency.span.is_zero()) {
                notes.push(latency.place.note(format!(
                    "the switch latency of {} is modelled as delay of each link into a switch of tier {i}",
                    latency.span
                )));
            }
        }
    }

    fn cables(&self) -> Result<TreeCables, ImportError> {
        let top = self.tiers.len() - 1;
        Ok(TreeCables { host: self.cable(0)?, aggregation: self.cable(1)?, core: self.cable(top)? })
    }

    /// The links of a tier to the one below: upward into this tier's switches, downward into the lower one's.
    fn cable(&self, tier: usize) -> Result<Cable, ImportError> {
        let (rate, delay) = (self.rate(tier)?, self.tiers[tier].need(TopoKey::DownlinkLatency)?.span);
        let latency =
            |tier: usize| self.tiers[tier].get(TopoKey::SwitchLatency).map_or(Span::ZERO, |latency| latency.span);
        let below = if tier == 0 { Span::ZERO } else { latency(tier - 1) };
        Ok(Cable { there: Wire { rate, delay: delay + latency(tier) }, back: Wire { rate, delay: delay + below } })
    }

    fn rate(&self, tier: usize) -> Result<Rate, ImportError> {
        Ok(self.tiers[tier].need(TopoKey::DownlinkSpeed)?.rate)
    }

    fn count(&self, tier: usize, key: TopoKey) -> Result<TopoSetting<'_>, ImportError> {
        self.tiers[tier].need(key)
    }

    fn bundle(&self, tier: usize) -> u32 {
        self.tiers[tier].get(TopoKey::Bundle).map_or(1, |bundle| bundle.count)
    }
}

impl TopoSetting<'_> {
    fn error(&self, problem: impl Into<String>) -> ImportError {
        self.place.error(problem)
    }
}
