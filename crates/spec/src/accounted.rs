//! The flows and messages that `measure.account` chooses.

use crate::error::SpecError;
use crate::places::Places;
use crate::tables::Accounts;
use firstlight_formats::nearest;
use std::collections::BTreeSet;
use wildmatch::WildMatch;

/// The flows and messages whose times are divided into causes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accounted {
    /// Whether each flow was chosen before the run.
    named: Vec<bool>,
    /// How many of the slowest complete flows are added.
    slowest: usize,
    /// Messages beside those on the critical paths of jobs, by number.
    messages: BTreeSet<usize>,
}

impl Accounted {
    /// What `measure.account` chooses. `workloads` has the name of each flow's workload; `messages` is the number of
    /// messages.
    pub(crate) fn of(
        accounts: &Accounts,
        workloads: &[&str],
        messages: usize,
        places: &Places,
    ) -> Result<Option<Self>, SpecError> {
        let all = |named| Accounted { named: vec![named; workloads.len()], slowest: 0, messages: BTreeSet::new() };
        match accounts {
            Accounts::All(false) => Ok(None),
            Accounts::All(true) => Ok(Some(all(true))),
            Accounts::Of(names) => {
                let mut accounted = all(false);
                for (index, name) in names.iter().enumerate() {
                    let wrong = |text| SpecError::from(places.problem("measure.account", text));
                    if names[..index].contains(name) {
                        return Err(wrong(format!("'{name}' is listed twice: name it once")));
                    }
                    accounted.choose(name, workloads, messages).map_err(wrong)?;
                }
                Ok(Some(accounted))
            }
        }
    }

    /// Adds what an entry of the list chooses.
    fn choose(&mut self, name: &str, workloads: &[&str], messages: usize) -> Result<(), String> {
        if let Some(slowest) = numbered(name, "slowest") {
            let least = |n: &usize| *n > 0;
            let number = slowest.filter(least).ok_or("write for example 'slowest 5': a whole number from 1")?;
            self.slowest = self.slowest.max(number);
            return Ok(());
        }
        if let Some(flow) = numbered(name, "flow") {
            let last = workloads.len().checked_sub(1).ok_or("there is no flow: take it out")?;
            let chosen = flow.and_then(|flow| self.named.get_mut(flow));
            *chosen.ok_or_else(|| format!("there is no '{name}': write 'flow 0' to 'flow {last}'"))? = true;
            return Ok(());
        }
        if let Some(message) = numbered(name, "message") {
            let last = messages.checked_sub(1).ok_or("there is no message: take it out")?;
            let known = message.filter(|message| *message <= last);
            self.messages
                .insert(known.ok_or_else(|| format!("there is no '{name}': write 'message 0' to 'message {last}'"))?);
            return Ok(());
        }
        let (pattern, mut found) = (WildMatch::new(name), false);
        for (named, workload) in self.named.iter_mut().zip(workloads) {
            let matches = pattern.matches(workload);
            *named |= matches;
            found |= matches;
        }
        if found {
            return Ok(());
        }
        let right = nearest(name, workloads.iter().copied()).map_or_else(
            || "write the name of a workload, 'flow 0' or 'slowest 5'".into(),
            |near| format!("did you mean {near}?"),
        );
        Err(format!("no workload with flows is called '{name}': {right}"))
    }

    /// Whether a flow was chosen by its number or its workload.
    pub fn is_named(&self, flow: usize) -> bool {
        self.named[flow]
    }

    /// Whether a message was chosen by its number.
    pub fn is_message(&self, message: usize) -> bool {
        self.messages.contains(&message)
    }

    /// How many of the slowest complete flows are chosen beside those.
    pub fn slowest(&self) -> usize {
        self.slowest
    }
}

/// The number after a word, where a text is the word and more: `None` in it where that is no number.
fn numbered(text: &str, word: &str) -> Option<Option<usize>> {
    let number = text.strip_prefix(word)?.strip_prefix(' ')?;
    Some(number.parse().ok())
}
