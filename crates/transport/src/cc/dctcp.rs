//! DCTCP: the window shrinks in proportion to the share of marked packets (RFC 8257).
//!
//! Section 3.3: alpha <- (1 - g) alpha + g M once per window of data, where M is the marked share; on a mark, once per
//! window, cwnd <- cwnd (1 - alpha / 2). Loss halves the window (section 3.5), as in Linux also when a reduction for a
//! mark is under way. M is counted in packets, as the window is. As in Linux alpha is a whole number of 1024ths. What
//! is added and taken away is rounded down: an alpha of which a share g is less than one becomes 0.
//!
//! RFC 8257 ends at a window of one or two packets. With `paced_floor` it goes on below one, as in Swift (Kumar et al.,
//! SIGCOMM 2020, algorithm 1): cwnd packets per round trip become one packet every RTT / cwnd, and an unmarked ACK adds
//! one packet to the window. Whole packets that a mark takes away are then rounded up.

use super::{Ack, CongestionControl, ControllerConfig, EcnUse, ModuleParameter, NewReno, NewRenoConfig, Window};
use firstlight_units::{Bytes, Span};

/// DCTCP (RFC 8257).
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema), serde(default))]
pub struct DctcpConfig {
    /// Gain of the moving average of the marked share (section 4.2).
    #[cfg_attr(feature = "spec", schemars(range(min = 0, max = 1)))]
    pub g: f64,
    /// Estimate of the marked share before the first window (section 4.2).
    #[cfg_attr(feature = "spec", schemars(range(min = 0, max = 1)))]
    pub initial_alpha: f64,
    /// Packets that the window falls to by marks and losses once it is one packet: less than one is a packet every so
    /// many round trips, which the host paces. It needs `tcp.min_window = 1`. Linux hosts have no such window.
    #[cfg_attr(feature = "spec", schemars(range(min = 0.0001, max = 1), extend("x-when" = "simulated flow")))]
    pub paced_floor: f64,
}

impl Default for DctcpConfig {
    fn default() -> Self {
        DctcpConfig { g: 1.0 / 16.0, initial_alpha: 1.0, paced_floor: 1.0 }
    }
}

impl ControllerConfig for DctcpConfig {
    const LINUX: Option<&'static str> = Some("dctcp");
    const TAKES_MIN_WINDOW: bool = true;

    fn parameters(&self) -> Vec<ModuleParameter> {
        const MODULE: &str = "tcp_dctcp";
        let shift = (0..=10u32).find(|shift| self.g == 1.0 / f64::from(1 << shift)).ok_or_else(|| {
            format!(
                "a Linux host takes 1, 0.5, 0.25 and so on down to 1/1024, not {}: write for example 0.0625",
                self.g
            )
        });
        let alpha = Ok((self.initial_alpha * 1024.0).round() as u32);
        vec![
            ModuleParameter { key: "g", module: MODULE, name: "dctcp_shift_g", value: shift },
            ModuleParameter { key: "initial_alpha", module: MODULE, name: "dctcp_alpha_on_init", value: alpha },
        ]
    }
}

/// alpha is counted in units of 1 / `ONE`.
const ONE: u32 = 1024;

/// The state of DCTCP.
#[derive(Clone, Debug)]
pub struct Dctcp {
    g: f64,
    /// Estimated share of marked packets, in 1024ths.
    alpha: u32,
    /// The observation window ends when this stream offset is acknowledged.
    window_end: u64,
    delivered: u32,
    marked: u32,
    paced_floor: f64,
    /// The part of a window of one packet that is left; it is below one only where the window is one packet.
    part: f64,
    rtt: Span,
    reno: NewReno,
}

impl Dctcp {
    /// A controller for one connection.
    pub fn new(config: DctcpConfig, tick: Span) -> Self {
        Dctcp {
            g: config.g,
            alpha: (config.initial_alpha * f64::from(ONE)).round() as u32,
            window_end: 0,
            delivered: 0,
            marked: 0,
            paced_floor: config.paced_floor,
            part: 1.0,
            rtt: Span::ZERO,
            reno: NewReno::new(NewRenoConfig {}, tick),
        }
    }
}

impl CongestionControl for Dctcp {
    fn on_ack(&mut self, _window: &mut Window, ack: &Ack) {
        self.rtt = ack.srtt.unwrap_or(self.rtt);
        self.delivered += ack.delivered;
        if ack.ece {
            self.marked += ack.delivered;
        }
        if ack.una >= self.window_end {
            let forgotten = (f64::from(self.alpha) * self.g) as u32;
            self.alpha -= if forgotten == 0 && self.g > 0.0 { self.alpha } else { forgotten };
            let share = f64::from(self.marked) * f64::from(ONE) * self.g / f64::from(self.delivered.max(1));
            self.alpha = ONE.min(self.alpha + share as u32);
            self.delivered = 0;
            self.marked = 0;
            self.window_end = ack.next;
        }
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack) {
        if self.part < 1.0 {
            self.part = (self.part + f64::from(ack.delivered)).min(1.0);
        } else {
            self.reno.grow(window, ack);
        }
    }

    fn ssthresh(&mut self, window: &Window, marked: bool) -> u32 {
        if window.cwnd == 1 {
            let left = if marked { 1.0 - f64::from(self.alpha) / f64::from(2 * ONE) } else { 0.5 };
            self.part = (self.part * left).max(self.paced_floor);
        }
        if !marked {
            return self.reno.ssthresh(window, marked);
        }
        // Whole packets are taken away, as Linux rounds: of two packets none unless all are marked. Where windows fall
        // below one packet this is rounded up, else a few flows keep two packets and all others starve.
        let (excess, whole) = (u64::from(window.cwnd) * u64::from(self.alpha), u64::from(2 * ONE));
        let excess = if self.paced_floor < 1.0 { excess.div_ceil(whole) } else { excess / whole };
        (window.cwnd - excess as u32).max(window.floor)
    }

    fn on_recovery(&mut self, window: &mut Window) {
        window.ssthresh = self.reno.ssthresh(window, false);
    }

    fn ecn(&self) -> EcnUse {
        EcnUse::Precise
    }

    #[inline]
    fn pace(&mut self, _bytes: Bytes) -> Span {
        if self.part < 1.0 { Span::from_ps((self.rtt.as_ps() as f64 / self.part) as u64) } else { Span::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(delivered: u32, ece: bool, una: u64, next: u64) -> Ack {
        Ack { delivered, ece, una, next, ..Ack::default() }
    }

    /// With all packets marked alpha is 1 and each reduction halves; the round trip is 100 us.
    #[test]
    fn below_one_packet_the_window_is_a_pace() {
        let config = DctcpConfig { paced_floor: 0.2, ..DctcpConfig::default() };
        let mut dctcp = Dctcp::new(config, Span::ZERO);
        let mut window = Window { floor: 1, ssthresh: 1, ..Window::new(1) };
        let (us, mtu) = (Span::from_us, Bytes::new(1500));
        let ece = Ack { srtt: Some(us(100)), ..ack(1, true, 1, 2) };
        dctcp.on_ack(&mut window, &ece);
        assert_eq!(dctcp.pace(mtu), Span::ZERO);
        let paces = [(); 3].map(|()| {
            assert_eq!(dctcp.ssthresh(&window, true), 1);
            dctcp.pace(mtu)
        });
        assert_eq!(paces, [us(200), us(400), us(500)], "a half, a quarter, the floor of a fifth");
        // An ACK without a mark adds a packet, of which the window keeps what makes it one.
        dctcp.grow(&mut window, &ack(1, false, 2, 3));
        assert_eq!((window.cwnd, dctcp.pace(mtu)), (1, Span::ZERO));
        // A loss halves.
        assert_eq!((dctcp.ssthresh(&window, false), dctcp.pace(mtu)), (1, us(200)));
        // Above one packet nothing is paced.
        let mut dctcp = Dctcp::new(config, Span::ZERO);
        assert_eq!((dctcp.ssthresh(&Window { cwnd: 2, ..window }, true), dctcp.pace(mtu)), (1, Span::ZERO));
    }

    /// Half of the packets are marked, so that a mark takes a quarter of two packets.
    #[test]
    fn of_two_packets_a_mark_takes_one_where_windows_fall_below_one() {
        let window = Window { floor: 1, ..Window::new(2) };
        let after = |paced_floor| {
            let config = DctcpConfig { initial_alpha: 0.5, paced_floor, ..DctcpConfig::default() };
            Dctcp::new(config, Span::ZERO).ssthresh(&window, true)
        };
        assert_eq!((after(1.0), after(0.001)), (2, 1));
    }

    #[test]
    fn alpha_follows_equation_of_section_3_3() {
        let mut dctcp = Dctcp::new(DctcpConfig::default(), Span::ZERO);
        let mut window = Window::new(10);
        dctcp.on_ack(&mut window, &ack(1, false, 1, 11));
        assert_eq!(dctcp.alpha, 960);
        // A window of 10 packets, 4 of them marked.
        dctcp.on_ack(&mut window, &ack(6, false, 7, 17));
        dctcp.on_ack(&mut window, &ack(4, true, 11, 21));
        dctcp.on_ack(&mut window, &ack(0, false, 12, 22));
        assert_eq!(dctcp.alpha, 900 + 25, "15/16 of it, and 0.4/16 of 1024 rounded down");
        assert_eq!(dctcp.ssthresh(&Window { cwnd: 100, ssthresh: 50, ..Window::new(1) }, true), 100 - 45);
        assert_eq!(dctcp.ssthresh(&Window { cwnd: 100, ssthresh: 50, ..Window::new(1) }, false), 50);
    }

    #[test]
    fn a_small_alpha_is_forgotten() {
        let mut dctcp = Dctcp::new(DctcpConfig { initial_alpha: 16.0 / 1024.0, ..DctcpConfig::default() }, Span::ZERO);
        let alphas = [1, 2].map(|una| {
            dctcp.on_ack(&mut Window::new(10), &ack(1, false, una, una));
            dctcp.alpha
        });
        assert_eq!(alphas, [15, 0]);
    }
}
