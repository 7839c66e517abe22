//! The placement of a parallel application's ranks: one host in each line, the first line for rank 0. `#` begins a
//! comment.

use crate::ImportError;
use crate::reader::{FilePlace, lines};
use std::collections::BTreeSet;

/// Reads the host of each rank; `file` is its name for errors, and `host` finds the host of a name.
///
/// # Errors
/// When a line has no name of a host, or a host is there twice: with its place.
pub fn read(text: &str, file: &str, host: impl Fn(&str) -> Result<usize, String>) -> Result<Vec<usize>, ImportError> {
    let (mut hosts, mut taken) = (vec![], BTreeSet::new());
    for line in lines(file, text, Some('#')) {
        let [name] = line.columns(["host"])?;
        let found = host(name.text).map_err(|problem| name.error(problem))?;
        if !taken.insert(found) {
            return Err(name.error(format!("{} has a rank already: write each host once", name.text)));
        }
        hosts.push(found);
    }
    if hosts.is_empty() {
        return Err(FilePlace::start(file).error("there is no host: write the host of each rank in a line, as host0"));
    }
    Ok(hosts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_on_the_hosts_of_their_lines() {
        let host = |name: &str| name.parse().map_err(|_| format!("'{name}' is no host"));
        let read = |text| read(text, "ranks.txt", host).map_err(|error| error.to_string());
        assert_eq!(read("# two\n3\n\n1 # last\n"), Ok(vec![3, 1]));
        assert_eq!(read("3\n 3\n"), Err("ranks.txt:2:2: 3 has a rank already: write each host once".into()));
        assert_eq!(read("x"), Err("ranks.txt:1:1: 'x' is no host".into()));
        assert_eq!(read("1 2"), Err("ranks.txt:1:3: '2' is one word too many: a line has host".into()));
        let none = "ranks.txt:1:1: there is no host: write the host of each rank in a line, as host0";
        assert_eq!(read("#\n"), Err(none.into()));
    }
}
