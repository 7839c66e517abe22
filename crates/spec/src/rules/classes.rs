//! Rules about `[[hosts.classes]]`: which congestion control's packets have which traffic class.

use super::Rules;
use crate::conditions::Conditions;
use firstlight_transport::cc::CcName;

impl Rules<'_> {
    /// Checks that each entry names a controller in use that no other entry names, and a class that switches have.
    pub(super) fn classes_of_controllers(&mut self, conditions: &Conditions<'_>) {
        let experiment = self.experiment;
        let queues = experiment.switch.classes.len();
        for (index, entry) in experiment.hosts.classes.iter().enumerate() {
            let path = |key: &str| format!("hosts.classes.{index}.{key}");
            if queues == 0 {
                let text = "has no effect: switches have one queue for all classes; add [[switch.classes]], or take \
                            it out";
                self.wrong(&path("class"), text);
            } else if usize::from(entry.class) >= queues {
                let text = format!(
                    "no queue of [[switch.classes]] takes class {}: there are classes 0 to {}; use one of these, or \
                     add a table",
                    entry.class,
                    queues - 1
                );
                self.wrong(&path("class"), text);
            }
            let name = entry.cc.as_str();
            if let Some(first) = experiment.hosts.classes[..index].iter().position(|other| same(other.cc, entry.cc)) {
                let text = format!("{name} has a class already, that of hosts.classes.{first}: keep one of the two");
                self.wrong(&path("cc"), text);
            } else if !conditions.controllers().any(|cc| same(cc, entry.cc)) {
                let used: Vec<&str> = conditions.controllers().map(CcName::as_str).collect();
                let text = format!("has no effect: no connection uses {name} but {}; take it out", used.join(", "));
                self.wrong(&path("cc"), text);
            }
        }
    }
}

/// Whether two names are of one controller.
fn same(one: CcName, other: CcName) -> bool {
    one == other || one.simulated().is_some_and(|name| other.simulated() == Some(name))
}
