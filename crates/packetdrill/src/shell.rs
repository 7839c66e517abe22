//! The shell commands of scripts: settings, the link's queue, counters.

use crate::ScriptProblem;
use crate::host::ScriptHost;
use std::path::Path;

/// Runs the commands of a script, or of a file in `directory` that it names. `Err` names the command that this runner
/// does not know.
pub(crate) fn run(commands: &str, host: &mut ScriptHost, directory: &Path) -> Result<(), ScriptProblem> {
    for command in commands.replace("\\\n", " ").lines().flat_map(|line| line.split(" ; ")) {
        let command = command.split(" #").next().unwrap_or_default().trim();
        if !command.is_empty() && !command.starts_with('#') {
            one(command, host, directory)?;
        }
    }
    Ok(())
}

fn one(command: &str, host: &mut ScriptHost, directory: &Path) -> Result<(), ScriptProblem> {
    let words = words(command);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[0] {
        "sysctl" => settings(words[1..].iter().filter(|word| !word.starts_with('-') && word.contains('=')), host),
        name if name.ends_with("set_sysctls.py") => settings(words[1..].iter(), host),
        name if name.ends_with("defaults.sh") => {
            let path = directory.join(name);
            let failed = |e| ScriptProblem::System(format!("{}: {e}", path.display()));
            let text = std::fs::read_to_string(&path).map_err(failed)?;
            run(&text, host, directory)
        }
        // Nothing is kept from one script to the next, and files are made of zeros.
        name if name.starts_with("/tmp/sysctl_restore") || name.ends_with("/rm") || name.ends_with("/dd") => Ok(()),
        "ip" if words.contains(&"tcp_metrics") => Ok(()),
        // Packets are cut by the endpoint, not by the device.
        "ethtool" => Ok(()),
        "tc" => queue(&words),
        "nstat" => counter(command, host),
        _ => unsupported(format!("commands such as `{command}`")),
    }
}

fn settings<'a>(assignments: impl Iterator<Item = &'a &'a str>, host: &mut ScriptHost) -> Result<(), ScriptProblem> {
    for assignment in assignments {
        if let Some((name, value)) = assignment.split_once('=') {
            host.sysctls.set(name, value).or_else(unsupported)?;
        }
    }
    Ok(())
}

/// The queue of the link: one without limit is the only one there is.
fn queue(words: &[&str]) -> Result<(), ScriptProblem> {
    match words {
        ["tc", "qdisc", "add", .., "pfifo"] => Ok(()),
        _ => unsupported("queues of the link that refuse packets or pace them"),
    }
}

/// `nstat -n` starts to count, `nstat | grep NAME | grep -q " 3 "` asks.
fn counter(command: &str, host: &mut ScriptHost) -> Result<(), ScriptProblem> {
    let Some(name) = command.split("grep ").nth(1).and_then(|rest| rest.split([' ', '|']).next()) else {
        return Ok(());
    };
    let expected = command.split('"').nth(1).and_then(|number| number.trim().parse().ok());
    let Some(found) = host.count(name) else { return unsupported(format!("counters called {name}")) };
    if Some(found) == expected {
        return Ok(());
    }
    Err(ScriptProblem::differs(0, format!("counter {name} is {found}, expected {expected:?}")))
}

fn unsupported(what: impl Into<String>) -> Result<(), ScriptProblem> {
    Err(ScriptProblem::unsupported(0, what))
}

/// The words of a command, with quotes taken off and `$((a*b))` worked out; what follows a redirection is left out.
fn words(command: &str) -> Vec<String> {
    let command = command.split(" >").next().unwrap_or(command);
    let (mut words, mut word, mut quoted) = (vec![], String::new(), false);
    for c in command.chars() {
        match c {
            '"' => quoted = !quoted,
            ' ' | '\t' if !quoted => {
                if !word.is_empty() {
                    words.push(arithmetic(&std::mem::take(&mut word)));
                }
            }
            _ => word.push(c),
        }
    }
    words.push(arithmetic(&word));
    words
}

fn arithmetic(word: &str) -> String {
    let Some((before, rest)) = word.split_once("$((") else { return word.to_owned() };
    let Some((product, after)) = rest.split_once("))") else { return word.to_owned() };
    let value: u64 = product.split('*').filter_map(|factor| factor.trim().parse::<u64>().ok()).product();
    arithmetic(&format!("{before}{value}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_what_a_shell_makes_of_them() {
        let command = r#"sysctl -q net.ipv4.tcp_rmem="4096 540000 $((15*1024*1024))" > /dev/null 2>&1"#;
        assert_eq!(words(command), ["sysctl", "-q", "net.ipv4.tcp_rmem=4096 540000 15728640"]);
    }
}
