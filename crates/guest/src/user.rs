//! Users that programs run as, read from the machine's `/etc/passwd` and `/etc/group` alone.

use crate::failure::{Context, GuestFailure};
use nix::unistd::{Gid, Uid, setgid, setgroups, setuid};
use std::fs;
use std::io;
use std::os::unix::fs::chown;
use std::path::Path;

/// A user who owns files, or whom a program runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub home: String,
    user: u32,
    group: u32,
    /// All groups of the user.
    groups: Vec<Gid>,
}

impl User {
    /// Finds a user by name.
    pub fn find(name: &str) -> Result<Self, GuestFailure> {
        let read = |file: &str| fs::read_to_string(file).context(|| format!("cannot read {file}"));
        Self::parse(name, &read("/etc/passwd")?, &read("/etc/group")?)
            .ok_or_else(|| GuestFailure::new(format!("there is no user '{name}' in /etc/passwd")))
    }

    fn parse(name: &str, users: &str, groups: &str) -> Option<Self> {
        let line = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
        let fields = line.into_iter().find(|fields| fields.len() >= 6 && fields[0] == name)?;
        let (user, group) = (fields[2].parse().ok()?, fields[3].parse().ok()?);
        let further = groups.lines().filter_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let is_member = fields.get(3)?.split(',').any(|member| member == name);
            is_member.then(|| fields[2].parse().ok()).flatten()
        });
        let groups = std::iter::once(group).chain(further).map(Gid::from_raw).collect();
        Some(User { name: name.into(), home: fields[5].into(), user, group, groups })
    }

    /// Gives the user a folder.
    pub fn own(&self, folder: &Path) -> io::Result<()> {
        chown(folder, Some(self.user), Some(self.group))
    }

    /// Makes this process the user's, for good.
    pub fn become_user(&self) -> io::Result<()> {
        setgroups(&self.groups)?;
        setgid(Gid::from_raw(self.group))?;
        setuid(Uid::from_raw(self.user))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_an_id_a_home_and_groups() {
        let users =
            "root:x:0:0:root:/root:/bin/sh\nbroken\npostgres:x:106:110:PostgreSQL:/var/lib/postgresql:/bin/sh\n";
        let groups = "root:x:0:\nssl-cert:x:107:www,postgres\nother:x:5:postgresql\npostgres:x:110:\n";
        let found = User::parse("postgres", users, groups).unwrap();
        assert_eq!((found.user, found.group, found.home.as_str()), (106, 110, "/var/lib/postgresql"));
        assert_eq!(found.groups, [110, 107].map(Gid::from_raw));
        assert_eq!(User::parse("postgresql", users, groups), None);
    }
}
