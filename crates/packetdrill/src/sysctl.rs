//! The settings of a kernel that scripts make, as settings of the endpoint.

use firstlight_transport::{Autotune, CcConfig, Memory, StackConfig, TcpConfig};
use firstlight_units::{Bytes, Span};
use std::collections::BTreeMap;

/// Settings by name, such as `tcp_sack`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sysctls {
    values: BTreeMap<String, Vec<u64>>,
    controller: String,
}

/// Settings that change nothing here, and the only value that the endpoint has.
const FIXED: &[(&str, u64)] = &[
    ("tcp_dsack", 1),
    ("tcp_fack", 0),
    ("tcp_reordering", 3),
    ("tcp_recovery", 1),
    ("tcp_pacing_ss_ratio", 200),
    ("tcp_pacing_ca_ratio", 120),
];
/// Settings without an effect on these scripts.
const UNUSED: &[&str] =
    &["tcp_syn_retries", "tcp_synack_retries", "tcp_fastopen", "tcp_fastopen_key", "tcp_syncookies", "tcp_ecn_option"];
/// Settings that the endpoint has.
const KNOWN: &[&str] = &[
    "tcp_rmem",
    "tcp_wmem",
    "tcp_timestamps",
    "tcp_sack",
    "tcp_frto",
    "tcp_slow_start_after_idle",
    "tcp_early_retrans",
    "tcp_tso_win_divisor",
    "tcp_min_tso_segs",
    "tcp_ecn",
    "tcp_notsent_lowat",
    "tcp_invalid_ratelimit",
    "tcp_rto_max_ms",
    "tcp_shrink_window",
];

impl Sysctls {
    /// Sets `name` (`net.ipv4.tcp_sack`, or its path). `Err` names the setting or value that this runner does not know.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let name = name.rsplit(['.', '/']).next().unwrap_or(name);
        if name == "tcp_congestion_control" {
            value.clone_into(&mut self.controller);
            return CcConfig::from_name(controller_name(value)).map(|_| ()).ok_or(format!("`{value}` as controller"));
        }
        if UNUSED.contains(&name) {
            return Ok(());
        }
        let numbers: Result<Vec<u64>, _> = value.split_whitespace().map(str::parse).collect();
        let numbers = numbers.map_err(|_| format!("`{value}` as value of {name}"))?;
        if let Some((_, only)) = FIXED.iter().find(|(fixed, _)| *fixed == name) {
            return if numbers == [*only] { Ok(()) } else { Err(format!("other values of {name} than {only}")) };
        }
        if !KNOWN.contains(&name) {
            return Err(format!("settings called {name}"));
        }
        self.values.insert(name.to_owned(), numbers);
        Ok(())
    }

    fn get(&self, name: &str) -> Option<u64> {
        self.values.get(name)?.last().copied()
    }

    fn flag(&self, name: &str) -> bool {
        self.get(name) != Some(0)
    }

    /// The congestion control of a new connection.
    pub(crate) fn controller(&self) -> CcConfig {
        CcConfig::from_name(controller_name(&self.controller)).expect("it was checked")
    }

    /// How much may be unsent before a write waits, as a program sees it.
    pub(crate) fn unsent_limit(&self) -> i64 {
        0
    }

    /// The settings of a new connection, of whose socket these options were set.
    pub(crate) fn config(&self, options: &[(String, i64)]) -> TcpConfig {
        let mut config = TcpConfig {
            mtu: 1500,
            timestamps: self.flag("tcp_timestamps"),
            sack: self.flag("tcp_sack"),
            frto: self.flag("tcp_frto"),
            tail_loss_probe: self.flag("tcp_early_retrans"),
            ecn: self.get("tcp_ecn") == Some(1),
            tick: Span::from_ms(1),
            nagle: true,
            stack: self.stack(),
            ..TcpConfig::default()
        };
        if let Some(most) = self.get("tcp_rto_max_ms") {
            config.rto_max = Span::from_ms(most);
        }
        config.receive_window = Bytes::new(self.get("tcp_rmem").unwrap_or(6 << 20));
        config.stack.receive_memory = Some(config.receive_window);
        if let Some((_, buffer)) = options.iter().rfind(|(name, _)| name == "SO_RCVBUF") {
            // The kernel doubles the size that a program sets, for its own bookkeeping.
            config.autotune = Autotune::Off;
            config.receive_window = Bytes::new(*buffer as u64);
            config.stack.receive_memory = Some(Bytes::new(2 * *buffer as u64));
        }
        config
    }

    fn stack(&self) -> StackConfig {
        // The window scale follows only from the script's settings.
        let mut stack = StackConfig { memory: Memory::Tun, receive_limit: Bytes::new(0), ..StackConfig::default() };
        if let Some(interval) = self.get("tcp_invalid_ratelimit") {
            stack.challenge_interval = Span::from_ms(interval);
        }
        if let Some(share) = self.get("tcp_tso_win_divisor") {
            stack.burst_share = share;
        }
        if let Some(least) = self.get("tcp_min_tso_segs") {
            stack.least_burst = least as u32;
        }
        stack.restart_after_idle = self.flag("tcp_slow_start_after_idle");
        stack.shrink_window = self.get("tcp_shrink_window") == Some(1);
        if let Some([_, first, _]) = self.values.get("tcp_rmem").map(Vec::as_slice) {
            stack.receive_buffer = Bytes::new(*first);
        }
        if let Some([_, first, most]) = self.values.get("tcp_wmem").map(Vec::as_slice) {
            stack.send_buffer = Bytes::new(*first);
            stack.send_buffer_max = Bytes::new(*most);
        }
        stack
    }
}

/// Linux calls NewReno `reno`.
fn controller_name(name: &str) -> &str {
    match name {
        "" => "cubic",
        "reno" => "newreno",
        other => other,
    }
}
