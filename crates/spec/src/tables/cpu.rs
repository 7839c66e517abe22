//! `[linux.cpu]`: what computing takes on the processors of Linux hosts.

use firstlight_linux::Parameter;
use firstlight_units::{SettingError, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The module of our driver, whose parameters these are.
const DRIVER: &str = "firstlight";

/// The processors of each Linux host: their work takes virtual time of that host alone. Computation of programs between
/// two system calls takes none. Each key is one cost; those that are not given are the profile's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CpuTable {
    /// A server whose costs these are, as published.
    pub profile: CpuProfile,
    /// Processors of each host. The card's interrupts and the packets that it receives are work of the first.
    #[schemars(range(min = 1, max = 64), extend("x-without" = "the profile's"))]
    pub cores: Option<u32>,
    /// A system call, whatever it does.
    #[schemars(extend("x-most" = "1ms", "x-without" = "the profile's"))]
    pub syscall: Option<Span>,
    /// A read of the clock, which needs no system call on a real machine.
    #[schemars(extend("x-most" = "1ms", "x-without" = "the profile's"))]
    pub clock: Option<Span>,
    /// A wake-up of a thread that a system call has put to sleep.
    #[schemars(extend("x-most" = "1ms", "x-without" = "the profile's"))]
    pub wakeup: Option<Span>,
    /// The time until a processor without work begins to work, once an interrupt or a thread that becomes ready has
    /// woken it: it leaves the idle state.
    #[schemars(extend("x-most" = "1ms", "x-without" = "the profile's"))]
    pub idle: Option<Span>,
    /// A byte that is copied between a program's memory and the kernel's.
    #[schemars(extend("x-most" = "1us", "x-without" = "the profile's", "examples" = ["250ps"]))]
    pub copy: Option<Span>,
    /// An interrupt of the network card.
    #[schemars(extend("x-most" = "1ms", "x-without" = "the profile's"))]
    pub interrupt: Option<Span>,
    /// A packet that the card has received.
    #[schemars(extend("x-most" = "1ms", "x-without" = "the profile's"))]
    pub packet: Option<Span>,
    /// A byte of such a packet, beside `linux.cpu.packet`.
    #[schemars(extend("x-most" = "1us", "x-without" = "the profile's", "examples" = ["50ps"]))]
    pub byte: Option<Span>,
    /// A packet that the host sends; it leaves when a processor has worked on it.
    #[schemars(extend("x-most" = "1ms", "x-without" = "the profile's"))]
    pub send: Option<Span>,
    /// The card's interrupt moderation. An interrupt comes this span after the packet that asks for it, and is for all
    /// packets that the card holds by then.
    #[schemars(extend("x-most" = "10ms", "x-without" = "the profile's"))]
    pub moderation: Option<Span>,
}

/// A server whose costs are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CpuProfile {
    /// Infinitely fast.
    #[default]
    #[serde(rename = "none")]
    None,
    /// Intel Xeon E5-2430 (6 cores, 2.2 GHz) with a card of 10 Gb/s and Linux 3.8, from 2013.
    #[serde(rename = "xeon-e5-2430")]
    XeonE52430,
}

/// A key of the table and its parameter of the driver, its value in a profile, and the one that is given.
type Cost = (&'static str, fn(&Costs) -> Span, fn(&CpuTable) -> Option<Span>);

/// Each cost, by its key.
const COSTS: [Cost; 10] = [
    ("syscall", |costs| costs.syscall, |table| table.syscall),
    ("clock", |costs| costs.clock, |table| table.clock),
    ("wakeup", |costs| costs.wakeup, |table| table.wakeup),
    ("idle", |costs| costs.idle, |table| table.idle),
    ("copy", |costs| costs.copy, |table| table.copy),
    ("interrupt", |costs| costs.interrupt, |table| table.interrupt),
    ("packet", |costs| costs.packet, |table| table.packet),
    ("byte", |costs| costs.byte, |table| table.byte),
    ("send", |costs| costs.send, |table| table.send),
    ("moderation", |costs| costs.moderation, |table| table.moderation),
];

/// All values of a profile.
struct Costs {
    cores: u32,
    syscall: Span,
    clock: Span,
    wakeup: Span,
    idle: Span,
    copy: Span,
    interrupt: Span,
    packet: Span,
    byte: Span,
    send: Span,
    moderation: Span,
}

impl CpuProfile {
    fn costs(self) -> Costs {
        let none = Costs {
            cores: 1,
            syscall: Span::ZERO,
            clock: Span::ZERO,
            wakeup: Span::ZERO,
            idle: Span::ZERO,
            copy: Span::ZERO,
            interrupt: Span::ZERO,
            packet: Span::ZERO,
            byte: Span::ZERO,
            send: Span::ZERO,
            moderation: Span::ZERO,
        };
        match self {
            CpuProfile::None => none,
            // Peter et al., "Arrakis: The Operating System is the Control Plane", OSDI'14, table 1: an echo server of
            // UDP with payloads of 1,024 B on Linux. The table is quoted at second hand. A system call is the way into
            // the kernel and back, 0.10 us each; the wake-up is the scheduler's time where the processor was idle; a
            // copied byte is the mean of 0.24 us for a payload in and 0.44 us for one out. It has no row for the
            // interrupt. The clock is of "On the costs of syscalls" (gms.tf, 2020), where a read takes 14 to 21 ns on
            // processors of the family E5-2600.
            CpuProfile::XeonE52430 => Costs {
                cores: 6,
                syscall: Span::from_ns(200),
                clock: Span::from_ns(16),
                wakeup: Span::from_ns(2400),
                copy: Span::from_ps(332),
                packet: Span::from_ns(1260),
                send: Span::from_ns(1050),
                ..none
            },
        }
    }
}

impl CpuTable {
    /// Checks that `cores` is given only where at least one cost is above zero.
    pub(crate) fn check(&self) -> Result<(), SettingError> {
        let useless = self.cores.is_some() && self.parameters().is_empty();
        let problem = "nothing takes time on these processors: choose a profile, give a cost, or take this out";
        SettingError::unless(!useless, "cores", problem)
    }

    /// Parameters of the driver; none where nothing takes time.
    pub(crate) fn parameters(&self) -> Vec<Parameter> {
        let profile = self.profile.costs();
        let costs = COSTS.map(|(key, of_profile, given)| (key, given(self).unwrap_or_else(|| of_profile(&profile))));
        if costs.iter().all(|(_, cost)| cost.is_zero()) {
            return vec![];
        }
        let parameter = |name: String, value: u64| Parameter { module: DRIVER.into(), name, value: value.to_string() };
        let cores = parameter("cores".into(), self.cores.unwrap_or(profile.cores).into());
        let own = costs.into_iter().filter(|(_, cost)| !cost.is_zero());
        std::iter::once(cores).chain(own.map(|(key, cost)| parameter(format!("{key}_ps"), cost.as_ps()))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(table: &CpuTable) -> Vec<String> {
        table.parameters().iter().map(|p| format!("{}.{}={}", p.module, p.name, p.value)).collect()
    }

    #[test]
    fn what_takes_no_time_sets_nothing() {
        assert_eq!(written(&CpuTable::default()), [""; 0]);
        assert_eq!(written(&CpuTable { syscall: Some(Span::ZERO), ..CpuTable::default() }), [""; 0]);
    }

    #[test]
    fn a_key_replaces_that_of_the_profile() {
        let profile = CpuProfile::XeonE52430;
        let table = CpuTable { profile, cores: Some(2), wakeup: Some(Span::ZERO), ..CpuTable::default() };
        let all = written(&table);
        assert_eq!(all[..3], ["firstlight.cores=2", "firstlight.syscall_ps=200000", "firstlight.clock_ps=16000"]);
        assert!(all.iter().all(|one| !one.contains("wakeup")), "{all:?}");
        let moderated = CpuTable { moderation: Some(Span::from_us(8)), ..CpuTable::default() };
        assert_eq!(written(&moderated), ["firstlight.cores=1", "firstlight.moderation_ps=8000000"]);
    }
}
