//! The hosts of a fabric: how many there are, in which racks, and which of them a name stands for.

use crate::host_name::HostName;
use crate::network::ImportedNetwork;
use crate::tables::FabricTable;
use firstlight_net::HostId;
use firstlight_net::topology::FurtherLink;
use firstlight_units::Rate;

/// The hosts of the fabric, by rack.
pub(crate) struct HostDirectory {
    /// `None` where the fabric has no racks.
    racks: Option<usize>,
    /// How many hosts there are; their further links have the numbers after these.
    pub hosts: usize,
    pub further: Vec<FurtherLink>,
    /// The number by which lists of flows call each host, ascending.
    pub numbers: Vec<u32>,
    /// The rate of each host's link, and of further links.
    pub rates: Vec<Rate>,
}

impl HostDirectory {
    pub fn of(fabric: &FabricTable, imported: &ImportedNetwork) -> Self {
        let (ports, further) = (imported.network.hosts(), imported.network.further().to_vec());
        let hosts = ports - further.len();
        HostDirectory {
            racks: fabric.racks().map(|racks| racks as usize),
            hosts,
            further,
            numbers: imported.host_numbers.clone(),
            rates: (0..ports).map(|host| imported.network.host_rate(HostId(host as u16))).collect(),
        }
    }

    /// Hosts in each rack; all of them where there are no racks.
    pub fn per_rack(&self) -> usize {
        self.hosts / self.racks.unwrap_or(1)
    }

    /// How many racks there are; `None` where the fabric has none.
    pub fn racks(&self) -> Option<usize> {
        self.racks
    }

    /// How many racks there are, and hosts in each; where there are no racks each host counts as one.
    pub fn units(&self) -> (usize, usize) {
        self.racks.map_or((self.hosts, 1), |racks| (racks, self.per_rack()))
    }

    /// The hosts that a name stands for.
    pub fn hosts(&self, name: HostName) -> Result<Vec<usize>, String> {
        let rack = |rack: u32| match self.racks {
            None => Err(format!("the fabric has no racks: write host0 to host{} or all", self.hosts - 1)),
            Some(racks) if rack as usize >= racks => {
                Err(format!("there is no rack{rack}: the fabric has rack0 to rack{}", racks - 1))
            }
            Some(_) => Ok(rack as usize * self.per_rack()),
        };
        match name {
            HostName::All => Ok((0..self.hosts).collect()),
            HostName::Rack(r) => rack(r).map(|first| (first..first + self.per_rack()).collect()),
            HostName::Host(host) if (host as usize) < self.rates.len() => Ok(vec![host as usize]),
            HostName::Host(host) => {
                Err(format!("there is no host{host}: the fabric has host0 to host{}", self.rates.len() - 1))
            }
            HostName::RackHost(r, host) => {
                let (first, last) = (rack(r)?, self.per_rack() - 1);
                if host as usize > last {
                    return Err(format!("there is no rack{r}.host{host}: the rack has host0 to host{last}"));
                }
                Ok(vec![first + host as usize])
            }
        }
    }

    /// The further link that a number is; `None` for a host.
    pub fn further_link(&self, host: usize) -> Option<FurtherLink> {
        host.checked_sub(self.hosts).map(|further| self.further[further])
    }

    /// The host whose link a number is.
    pub fn owner(&self, host: usize) -> usize {
        self.further_link(host).map_or(host, |link| link.of.index())
    }

    /// The names of a host, the one over the whole fabric first.
    pub fn names(&self, host: usize) -> Vec<String> {
        let mut names = vec![HostName::Host(host as u32).to_string()];
        if self.racks.is_some() {
            let (rack, within) = (host / self.per_rack(), host % self.per_rack());
            names.push(HostName::RackHost(rack as u32, within as u32).to_string());
        }
        names
    }
}
