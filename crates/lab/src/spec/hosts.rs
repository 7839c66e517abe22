//! Kinds of hosts, and which hosts a name of the experiment stands for.

use super::network::Found;
use super::value::Hosts;
use super::values::Values;
use firstlight_net::HostId;
use firstlight_units::Rate;

/// Whose TCP a host runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostKind {
    /// Our endpoint model.
    Simulated,
    /// A Linux kernel in virtual time.
    Linux,
}

impl HostKind {
    /// As experiments write them.
    pub(crate) const NAMES: &'static [&'static str] = &["simulated", "linux"];

    /// The name by which users know it.
    pub const fn name(self) -> &'static str {
        match self {
            HostKind::Simulated => "simulated",
            HostKind::Linux => "linux",
        }
    }

    fn of(name: &str) -> Self {
        if name == HostKind::Linux.name() { HostKind::Linux } else { HostKind::Simulated }
    }
}

impl Values {
    /// The kind of hosts where nothing else is said.
    pub fn host_kind(&self) -> HostKind {
        HostKind::of(&self.text("hosts.kind"))
    }

    /// The kind of hosts of the entry at `path`, of `[[flows]]` or `[[workload]]`.
    pub fn host_kind_of(&self, path: &str) -> HostKind {
        self.text_opt(&format!("{path}.hosts")).map_or_else(|| self.host_kind(), |name| HostKind::of(&name))
    }
}

/// The hosts of the fabric, by rack.
pub(crate) struct Shape {
    /// None where the fabric has no racks.
    racks: Option<usize>,
    pub hosts: usize,
    /// The number by which lists of flows call each host, ascending.
    pub numbers: Vec<u32>,
    /// The rate of each host's link.
    pub rates: Vec<Rate>,
}

impl Shape {
    pub fn of(values: &Values, found: &Found) -> Self {
        let racks = match values.text("fabric.kind").as_str() {
            "fat_tree" => Some(values.integer("fabric.k").pow(2) / 2),
            _ => values.integer_opt("fabric.racks"),
        };
        Shape {
            racks: racks.map(|racks| racks as usize),
            hosts: found.network.hosts(),
            numbers: found.host_numbers.clone(),
            rates: (0..found.network.hosts()).map(|host| found.network.host_rate(HostId(host as u16))).collect(),
        }
    }

    pub fn per_rack(&self) -> usize {
        self.hosts / self.racks.unwrap_or(1)
    }

    /// How many racks; none where the fabric has none.
    pub fn racks(&self) -> Option<usize> {
        self.racks
    }

    /// The hosts that a name stands for.
    pub fn hosts(&self, name: Hosts) -> Result<Vec<usize>, String> {
        let rack = |rack: u32| match self.racks {
            None => Err(format!("the fabric has no racks: write host0 to host{} or all", self.hosts - 1)),
            Some(racks) if rack as usize >= racks => {
                Err(format!("there is no rack{rack}: the fabric has rack0 to rack{}", racks - 1))
            }
            Some(_) => Ok(rack as usize * self.per_rack()),
        };
        match name {
            Hosts::All => Ok((0..self.hosts).collect()),
            Hosts::Rack(r) => rack(r).map(|first| (first..first + self.per_rack()).collect()),
            Hosts::Host(host) if (host as usize) < self.hosts => Ok(vec![host as usize]),
            Hosts::Host(host) => Err(format!("there is no host{host}: the fabric has host0 to host{}", self.hosts - 1)),
            Hosts::RackHost(r, host) => {
                let (first, last) = (rack(r)?, self.per_rack() - 1);
                if host as usize > last {
                    return Err(format!("there is no rack{r}.host{host}: the rack has host0 to host{last}"));
                }
                Ok(vec![first + host as usize])
            }
        }
    }

    /// A host's names, the one over the whole fabric first.
    pub fn names(&self, host: usize) -> Vec<String> {
        let mut names = vec![Hosts::Host(host as u32).to_string()];
        if self.racks.is_some() {
            let (rack, within) = (host / self.per_rack(), host % self.per_rack());
            names.push(Hosts::RackHost(rack as u32, within as u32).to_string());
        }
        names
    }
}
