//! A tree of three tiers with given counts, oversubscribed or not.
//!
//! HULL (Alizadeh et al., NSDI'12, section 7.2) and DX (section 6.3) have 192 servers, 32 ToR, 16 aggregation and
//! 8 core switches, of 8 ports each: 8 pods of 4 ToR switches (6 servers and 2 uplinks each, so 3:1 oversubscribed)
//! and 2 aggregation switches (4 uplinks each).
//!
//! A ToR switch has one link to each aggregation switch of its pod, so its number of uplinks says how many pods there
//! are. Where uplinks are not given they follow from all switches having the same number of ports. With s servers per
//! ToR switch, u uplinks of a ToR and w of an aggregation switch, and T, A and C switches of the three tiers, that is
//! s + u = T u / A + w = A w / C, thus u = s (A - C) / (T - A + C) and w = T C u / (A (A - C)).

use super::error::{at_least_one, evenly};
use super::{Topology, TopologyError, Tree, TreeCables};

/// The shape of a three-tier tree. Counts are of the whole tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreeTier {
    /// Servers.
    pub servers: u32,
    /// ToR switches.
    pub tors: u32,
    /// Aggregation switches.
    pub aggregations: u32,
    /// Core switches.
    pub cores: u32,
    /// Uplinks of a ToR switch, each to another aggregation switch: these are its pod's. `None`: as many as give all
    /// switches the same number of ports.
    pub tor_uplinks: Option<u32>,
    /// Uplinks of an aggregation switch. `None`: the fewest with which a pod reaches all core switches alike.
    pub aggregation_uplinks: Option<u32>,
    /// Rates and delays.
    pub cables: TreeCables,
}

impl ThreeTier {
    /// The network: `tor0`, ..., `agg0`, ..., `core0`, ...
    ///
    /// # Errors
    /// When the counts do not divide evenly, when they leave the uplinks open, or as [`Tree::build`].
    pub fn build(&self) -> Result<Topology, TopologyError> {
        self.tree()?.build()
    }

    /// The shape in general terms.
    ///
    /// # Errors
    /// When the counts do not divide evenly, or leave the uplinks open.
    pub fn tree(&self) -> Result<Tree, TopologyError> {
        at_least_one(self.cores, "core switches")?;
        let hosts = evenly(self.servers, "servers", self.tors, "ToR switches")?;
        let (aggregations, uplinks) = self.uplinks(hosts)?;
        let pods = evenly(self.aggregations, "aggregation switches", aggregations, "uplinks of a ToR switch")?;
        at_least_one(pods, "aggregation switches")?;
        let tors = evenly(self.tors, "ToR switches", pods, "pods")?;
        Ok(Tree {
            pods,
            tors,
            hosts,
            aggregations,
            cores: self.cores,
            uplinks,
            bundles: [1, 1],
            cables: self.cables,
            names: ["tor", "agg", "core"],
        })
    }

    /// Uplinks of a ToR and of an aggregation switch.
    fn uplinks(&self, servers_per_tor: u32) -> Result<(u32, u32), TopologyError> {
        let (of_tor, of_aggregation) = match self.tor_uplinks {
            Some(given) => (given, None),
            None => {
                let (of_tor, of_aggregation) = self.same_ports(servers_per_tor).ok_or_else(|| self.unknown())?;
                (of_tor, Some(of_aggregation))
            }
        };
        at_least_one(of_tor, "uplinks of a ToR switch")?;
        let fewest = || self.cores / gcd(of_tor, self.cores);
        Ok((of_tor, self.aggregation_uplinks.or(of_aggregation).unwrap_or_else(fewest)))
    }

    /// The uplinks with which all switches have the same number of ports, if that can be.
    fn same_ports(&self, servers_per_tor: u32) -> Option<(u32, u32)> {
        let [s, t, a, c] = [servers_per_tor, self.tors, self.aggregations, self.cores].map(u128::from);
        let above = a.checked_sub(c).filter(|n| *n > 0)?;
        let whole = |n: u128, d: u128| (d > 0 && n > 0 && n.is_multiple_of(d)).then(|| n / d);
        let u = whole(s * above, (t + c).checked_sub(a)?)?;
        let w = whole(t * c * u, a * above)?;
        Some((u.try_into().ok()?, w.try_into().ok()?))
    }

    fn unknown(&self) -> TopologyError {
        let ThreeTier { servers, tors, aggregations, cores, .. } = *self;
        TopologyError::UnknownUplinks { servers, tors, aggregations, cores }
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
