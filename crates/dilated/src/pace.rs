//! The engine paced by the machine's clock: it takes in what hosts send, does what is due, and hands over what arrives.
//!
//! The fabric's times are stretched by the TDF against the machine's clock, which is the hosts' own. Between two
//! packets the engine polls, on a processor of its own: no interrupt has to wake it.

use crate::adu::{Adu, Listener};
use crate::clock;
use crate::error::{Context, Error};
use crate::guest::Guest;
use crate::interfaces::HostInterfaces;
use firstlight_uml::Session;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::signalfd::SignalFd;
use std::net::SocketAddrV4;

/// What the engine waits for that is no device.
const GUEST: u64 = u64::MAX;
const SIGNAL: u64 = u64::MAX - 1;
/// Packets of one device, and events of the fabric, before the engine looks at the others again.
const PACKETS: usize = 16;
const EVENTS: usize = 256;
/// How long the engine sleeps at most while the fabric's time does not run, in milliseconds.
const REST: u8 = 5;
/// How long the program that runs the hosts may take to end its programs, in nanoseconds.
const ENDING: u64 = 10_000_000_000;

/// One run.
pub struct RealTimePace {
    session: Box<Session<HostInterfaces>>,
    guest: Guest,
    /// What programs write, where the control loop asks for it.
    adu: Option<Adu>,
    epoll: Epoll,
    /// Since when each device may have had a packet waiting, if some were left when the engine looked last.
    waiting_since: Vec<Option<u64>>,
    /// When it looked last.
    looked: u64,
    message: Vec<u8>,
    /// When the program that runs the hosts has to be gone.
    deadline: Option<u64>,
}

impl RealTimePace {
    pub fn new(
        mut session: Box<Session<HostInterfaces>>,
        guest: Guest,
        adu: Option<Adu>,
        signals: &SignalFd,
    ) -> Result<Self, Error> {
        let what = || "cannot wait for packets".into();
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).context(what)?;
        let event = |data| EpollEvent::new(EpollFlags::EPOLLIN, data);
        for (index, file) in session.kernel().files().enumerate() {
            epoll.add(file, event(index as u64)).context(what)?;
        }
        epoll.add(guest.socket(), event(GUEST)).context(what)?;
        epoll.add(signals, event(SIGNAL)).context(what)?;
        let waiting_since = vec![None; session.plan().hosts.len()];
        Ok(RealTimePace {
            session,
            guest,
            adu,
            epoll,
            waiting_since,
            looked: clock::now(),
            message: vec![],
            deadline: None,
        })
    }

    /// Runs until the program that runs the hosts has gone.
    ///
    /// # Errors
    /// When it goes before the run's end, a signal comes, or the system refuses something.
    pub fn run(&mut self) -> Result<(), Error> {
        let mut events = vec![EpollEvent::empty(); self.waiting_since.len() + 2];
        loop {
            let running = self.session.is_running();
            self.session.kernel().meter.running = running;
            let rest = if running { EpollTimeout::ZERO } else { EpollTimeout::from(REST) };
            let before = clock::now();
            let ready = self.epoll.wait(&mut events, rest).context(|| "cannot wait for packets".into())?;
            for event in &events[..ready] {
                match event.data() {
                    SIGNAL => return Err(Error::Signal),
                    GUEST => {
                        if !self.guest.receive(&mut self.message)? {
                            return if self.session.is_over() { Ok(()) } else { Err(Error::Guest) };
                        }
                        self.on_message();
                    }
                    device => self.on_packets(device as usize),
                }
            }
            let worked = self.step() || ready > 0;
            self.looked = before;
            self.session.kernel().meter.on_round(clock::now() - before, worked);
            if let Some(adu) = &self.adu {
                adu.check()?;
            }
            if self.deadline.is_some_and(|deadline| before > deadline) {
                return Ok(());
            }
        }
    }

    /// Takes in what a host has sent.
    #[inline]
    fn on_packets(&mut self, device: usize) {
        let since = self.waiting_since[device].take().unwrap_or(self.looked);
        for _ in 0..PACKETS {
            let kernel = self.session.kernel();
            let Some(taken) = kernel.take(device) else { return };
            let now = clock::now();
            kernel.due = now;
            kernel.meter.on_taken(now - since);
            if let Some(adu) = &mut self.adu {
                adu.report(&mut *self.session);
                adu.on_packet(taken.packet(), &mut *self.session);
            }
            self.session.send(device as u32, taken.cookie, taken.headers(), taken.length, now);
        }
        self.waiting_since[device] = Some(since);
    }

    /// Does what is due; true when there was something.
    #[inline]
    fn step(&mut self) -> bool {
        let mut now = clock::now();
        for done in 0..EVENTS {
            let Some(due) = self.session.next() else { return done > 0 };
            if due > now {
                now = clock::now();
                if due > now {
                    return done > 0;
                }
            }
            if let Some(adu) = &mut self.adu {
                adu.report(&mut *self.session);
            }
            self.session.kernel().due = due;
            self.session.run(due);
        }
        true
    }

    /// Answers a message of the guest program.
    fn on_message(&mut self) {
        let was_running = self.session.is_running();
        let answer = match self.session.control(&self.message, clock::now()) {
            Ok(()) => 0,
            Err(refused) => {
                eprintln!("{refused}");
                refused.errno()
            }
        };
        if !was_running && self.session.is_running() {
            self.session.kernel().begin();
        }
        if self.session.is_over() {
            self.deadline.get_or_insert(clock::now() + ENDING);
        }
        self.guest.answer(answer);
    }
}

impl Listener for Session<HostInterfaces> {
    fn wrote(&mut self, ends: [SocketAddrV4; 2], sequence: u32, bytes: i64) {
        Session::wrote(self, ends, sequence, bytes);
    }

    fn closed(&mut self, ends: [SocketAddrV4; 2]) {
        Session::closed(self, ends);
    }
}
