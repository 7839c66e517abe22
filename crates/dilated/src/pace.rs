//! The engine paced by the machine's clock: it takes in hosts' packets, carries out events that are due, and hands over
//! packets that arrive.
//!
//! The fabric's times are stretched by the TDF against the machine's clock, which is the hosts' own. Between two
//! packets the engine polls, on a processor of its own: no interrupt has to wake it.

use crate::adu::{Adu, Listener};
use crate::clock;
use crate::error::Error;
use crate::guest::Guest;
use crate::interfaces::{FromMachine, HostInterfaces, Taken};
use firstlight_linux::{Context, GuestMessage};
use firstlight_uml::{KernelCalls, RunDirectory, Session};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::signalfd::SignalFd;
use std::net::SocketAddrV4;

/// The descriptors besides devices that the engine waits for.
const GUEST: u64 = u64::MAX;
const SIGNAL: u64 = u64::MAX - 1;
const MACHINES: u64 = u64::MAX - 2;
/// Packets of one device, and events of the fabric, before the engine looks at the others again.
const PACKETS: usize = 16;
const EVENTS: usize = 256;
/// How long the engine sleeps at most while the fabric's time does not run, in milliseconds.
const REST: u8 = 5;
/// Datagrams of other machines before the engine looks at the others again.
const DATAGRAMS: usize = 64;
/// How long the program that runs the hosts may take to end its programs, in nanoseconds.
const ENDING: u64 = 10_000_000_000;

/// One run.
pub struct RealTimePace {
    directory: RunDirectory,
    session: Box<Session<HostInterfaces>>,
    guest: Guest,
    /// Programs' writes, where the control loop needs them.
    adu: Option<Adu>,
    epoll: Epoll,
    /// Since when each device may have had a packet waiting, if some were left when the engine looked last.
    waiting_since: Vec<Option<u64>>,
    /// When the engine looked at the devices last.
    looked: u64,
    message: Vec<u8>,
    /// The messages that begin and end the run wait here for the machines that have joined; the second one with the
    /// moment from which on nothing more happens.
    beginning: Option<Vec<u8>>,
    ending: Option<Vec<u8>>,
    frozen: Option<u64>,
    /// The time by which the program that runs the hosts must have ended.
    deadline: Option<u64>,
}

impl RealTimePace {
    pub fn new(
        directory: RunDirectory,
        mut session: Box<Session<HostInterfaces>>,
        guest: Guest,
        adu: Option<Adu>,
        signals: &SignalFd,
    ) -> Result<Self, Error> {
        let what = || "cannot wait for packets".into();
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).context(what)?;
        let event = |data| EpollEvent::new(EpollFlags::EPOLLIN, data);
        for (index, file) in session.kernel().files() {
            epoll.add(file, event(index as u64)).context(what)?;
        }
        if let Some(file) = session.kernel().machines.file() {
            epoll.add(file, event(MACHINES)).context(what)?;
        }
        epoll.add(guest.socket(), event(GUEST)).context(what)?;
        epoll.add(signals, event(SIGNAL)).context(what)?;
        let waiting_since = vec![None; session.plan().hosts.len()];
        Ok(RealTimePace {
            directory,
            session,
            guest,
            adu,
            epoll,
            waiting_since,
            looked: clock::now(),
            message: vec![],
            beginning: None,
            ending: None,
            frozen: None,
            deadline: None,
        })
    }

    /// Runs until the program that runs the hosts has gone.
    ///
    /// # Errors
    /// When it goes before the run's end, a signal comes, or the system refuses something.
    pub fn run(&mut self) -> Result<(), Error> {
        let mut events = vec![EpollEvent::empty(); self.waiting_since.len() + 3];
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
                    MACHINES => self.on_datagrams()?,
                    device => self.on_packets(device as usize),
                }
            }
            let worked = (self.frozen.is_none() && self.step()) || ready > 0;
            self.follow_machines(before)?;
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

    /// Takes in a host's packets.
    #[inline]
    fn on_packets(&mut self, device: usize) {
        let since = self.waiting_since[device].take().unwrap_or(self.looked);
        for _ in 0..PACKETS {
            let Some(taken) = self.session.kernel().take(device) else { return };
            self.on_packet(device, &taken, since);
        }
        self.waiting_since[device] = Some(since);
    }

    /// Takes in a packet that may have waited since then.
    #[inline]
    fn on_packet(&mut self, device: usize, taken: &Taken, since: u64) {
        let kernel = self.session.kernel();
        if self.frozen.is_some() {
            return kernel.drop(taken.cookie);
        }
        let now = clock::now();
        kernel.due = now;
        kernel.meter.on_taken(now.saturating_sub(since));
        if let Some(adu) = &mut self.adu {
            adu.report(&mut *self.session);
            adu.on_packet(taken.packet(), &mut *self.session);
        }
        self.session.send(device as u32, taken.cookie, taken.headers(), taken.length, now);
    }

    /// Takes in items that have come from machines that have joined.
    fn on_datagrams(&mut self) -> Result<(), Error> {
        for _ in 0..DATAGRAMS {
            match self.session.kernel().receive() {
                None => break,
                Some(FromMachine::State) => self.on_news()?,
                Some(FromMachine::Packet { host, since, taken }) => self.on_packet(host, &taken, since),
            }
        }
        Ok(())
    }

    /// Takes in events on other machines.
    fn on_news(&mut self) -> Result<(), Error> {
        let (ended, failed) = self.session.kernel().machines.news();
        for (program, code) in ended {
            self.control(&GuestMessage::ProgramEnded { program, code }.encode(), clock::now());
        }
        match failed {
            None => Ok(()),
            Some(why) => Err(Error::Machine(why)),
        }
    }

    /// Begins and ends the run with the machines that have joined, and sends them its progress.
    fn follow_machines(&mut self, now: u64) -> Result<(), Error> {
        let machines = &mut self.session.kernel().machines;
        if machines.file().is_none() {
            return Ok(());
        }
        machines.speak(false);
        machines.check(now)?;
        if machines.are_ready()
            && let Some(message) = self.beginning.take()
        {
            self.answer(&message, clock::now());
            self.session.kernel().machines.begin();
        }
        let machines = &mut self.session.kernel().machines;
        if self.ending.is_some() && self.frozen.is_none() && machines.are_finished() {
            machines.end();
            self.frozen = Some(clock::now());
        }
        if let Some(at) = self.frozen
            && self.session.kernel().machines.have_measured()
            && let Some(message) = self.ending.take()
        {
            self.answer(&message, at);
            let machines = &mut self.session.kernel().machines;
            machines.release();
            machines.report(&self.directory)?;
        }
        Ok(())
    }

    /// Carries out the events that are due. Returns whether there was one.
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

    /// Answers a message of the guest program, at once or when the machines that have joined are as far.
    fn on_message(&mut self) {
        let message = std::mem::take(&mut self.message);
        let joined = self.session.kernel().machines.file().is_some();
        match GuestMessage::decode(&message) {
            Ok(GuestMessage::Start) if joined => self.beginning = Some(message),
            Ok(GuestMessage::Finish) if joined => self.ending = Some(message),
            _ => self.answer(&message, clock::now()),
        }
    }

    fn answer(&mut self, message: &[u8], now: u64) {
        let was_running = self.session.is_running();
        let answer = self.control(message, now);
        if !was_running && self.session.is_running() {
            self.session.kernel().begin();
        }
        if self.session.is_over() {
            self.deadline.get_or_insert(clock::now() + ENDING);
        }
        self.guest.answer(answer);
    }

    /// The number of the error with which a message is refused; 0 when it is not.
    fn control(&mut self, message: &[u8], now: u64) -> i32 {
        match self.session.control(message, now) {
            Ok(()) => 0,
            Err(refused) => {
                eprintln!("{refused}");
                refused.errno()
            }
        }
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
