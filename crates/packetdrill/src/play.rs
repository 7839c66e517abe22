//! Plays a script: carries out its events, and compares the packets and results with those that it expects.

use crate::ScriptProblem;
use crate::calls::{Answer, Pending};
use crate::compare::{difference, join};
use crate::host::{ScriptHost, SentSegment};
use crate::python::{Snippet, execute};
use crate::script::{Call, PacketSpec, Script, ScriptAction, ScriptEvent, ScriptTime, ScriptValue, TcpOption};
use crate::translate::Seen;
use firstlight_units::{Span, Time};
use std::path::Path;

/// Tolerance of times: at least this, ...
const TOLERANCE: Span = Span::from_ms(4);
/// ... and this part of the time since the event before (an eighth, packetdrill's 12.5 %).
const TOLERANCE_PART: u64 = 8;
/// The time of the host's clock at which a script starts.
const START: Time = Time::from_ps(10_000_000_000_000);

struct Player<'a> {
    host: ScriptHost,
    directory: &'a Path,
    /// The time at which the event before was due.
    last: Time,
    tolerance: Span,
    /// Values of timestamps are compared.
    compare_clock: bool,
    snippets: Vec<Snippet>,
    /// A call that blocks.
    pending: Option<(Pending, &'a Call, usize, Time)>,
}

/// Plays `script`.
pub(crate) fn play(script: &Script, directory: &Path) -> Result<(), ScriptProblem> {
    let mut player = Player {
        host: ScriptHost::new(START),
        directory,
        last: START,
        tolerance: TOLERANCE,
        compare_clock: false,
        snippets: vec![],
        pending: None,
    };
    player.set(&script.options)?;
    let last = script.events.len().saturating_sub(1);
    for (number, event) in script.events.iter().enumerate() {
        player.event(event)?;
        if number == last {
            player.finish(event.line)?;
        }
    }
    execute(&player.snippets)
}

impl<'a> Player<'a> {
    fn set(&mut self, options: &[(String, String)]) -> Result<(), ScriptProblem> {
        for (name, value) in options {
            match (&**name, value.parse::<u64>()) {
                ("tolerance_usecs", Ok(us)) => self.tolerance = Span::from_us(us),
                ("tcp_ts_tick_usecs", Ok(1000)) => self.compare_clock = true,
                // Packets larger than this hold several segments: the endpoint knows the peer's segments by its SYN.
                ("mss", _) | ("send_omit_free", _) | ("ip_version", _) => {}
                _ => return Err(ScriptProblem::unsupported(1, format!("options such as --{name}={value}"))),
            }
        }
        Ok(())
    }

    fn event(&mut self, event: &'a ScriptEvent) -> Result<(), ScriptProblem> {
        let line = event.line;
        let base = self.last;
        let (from, to) = match event.when {
            ScriptTime::Any => (base, base),
            ScriptTime::Absolute(from, to) => (START + from, START + to),
            ScriptTime::Relative(from, to) => (base + from, base + to),
        };
        if let ScriptAction::Outbound(spec) = &event.action {
            return self.expect(spec, line, (event.when != ScriptTime::Any).then_some((from, to)));
        }
        self.last = from;
        self.run_to(from)?;
        let unsupported = |what| ScriptProblem::unsupported(line, what);
        match &event.action {
            ScriptAction::Inbound(spec) => self.host.receive(spec).map_err(unsupported)?,
            ScriptAction::Call(call) => self.call(call, line, base)?,
            ScriptAction::Command(text) => {
                crate::shell::run(text, &mut self.host, self.directory).map_err(|problem| problem.at(line))?;
            }
            ScriptAction::Code(code) => {
                let names = self.host.names();
                self.snippets.push(Snippet { line, code: code.clone(), names });
            }
            ScriptAction::Outbound(_) => {}
        }
        self.look_after_pending()
    }

    /// Lets time pass, up to `until`.
    fn run_to(&mut self, until: Time) -> Result<(), ScriptProblem> {
        while self.host.step(until) {
            self.look_after_pending()?;
        }
        Ok(())
    }

    fn tolerance(&self, expected: Time) -> Span {
        self.tolerance.max(expected.saturating_since(self.last) / TOLERANCE_PART)
    }

    /// The endpoint is expected to send a packet, between two times if these matter.
    fn expect(&mut self, spec: &PacketSpec, line: usize, when: Option<(Time, Time)>) -> Result<(), ScriptProblem> {
        let latest = when.map_or(self.last + Span::from_secs(600), |(_, to)| to + self.tolerance(to));
        let mut packets: Vec<(SentSegment, Seen)> = vec![];
        while packets.is_empty() || packets.iter().map(|(_, seen)| seen.len).sum::<u32>() < spec.len {
            match self.host.sent.pop_front() {
                // Only the connection that the script is about is compared.
                Some(sent) if self.host.current.is_some_and(|link| link != sent.link) => {}
                Some(sent) => {
                    let seen = self.host.links[sent.link].translation.outbound(sent.segment());
                    packets.push((sent, seen));
                }
                None if self.host.next().is_some_and(|at| at <= latest) => {
                    self.host.step(latest);
                    self.look_after_pending()?;
                }
                None => return Err(ScriptProblem::differs(line, missing(&packets))),
            }
        }
        self.check(spec, line, when, &packets)
    }

    fn check(
        &mut self,
        spec: &PacketSpec,
        line: usize,
        when: Option<(Time, Time)>,
        packets: &[(SentSegment, Seen)],
    ) -> Result<(), ScriptProblem> {
        let seen: Vec<Seen> = packets.iter().map(|(_, seen)| seen.clone()).collect();
        let list = || seen.iter().map(Seen::to_string).collect::<Vec<_>>().join("; ");
        let whole =
            join(&seen).ok_or_else(|| ScriptProblem::differs(line, format!("these are not one burst: {}", list())))?;
        let first = packets[0].0;
        let translation = &mut self.host.links[first.link].translation;
        let clock = translation.first_timestamp().filter(|_| self.compare_clock);
        if let Some(difference) = difference(spec, &whole, first.packet.ecn(), clock) {
            return Err(ScriptProblem::differs(line, format!("{difference}; found {}", list())));
        }
        for option in spec.options.iter().flatten() {
            if let TcpOption::Timestamp { value, .. } = option {
                translation.name_timestamp(*value, first.segment().tsval());
            }
        }
        let Some((from, to)) = when else {
            self.last = first.at;
            return Ok(());
        };
        self.check_time(line, "the packet", first.at, from, to)?;
        // After a range it counts when the packet went out.
        self.last = if from == to { from } else { first.at };
        Ok(())
    }

    fn check_time(&self, line: usize, what: &str, at: Time, from: Time, to: Time) -> Result<(), ScriptProblem> {
        let tolerance = self.tolerance(to);
        if at + tolerance < from || at > to + tolerance {
            let seconds = |at: Time| (at.saturating_since(START)).as_secs_f64();
            let (at, from, to) = (seconds(at), seconds(from), seconds(to));
            return Err(ScriptProblem::differs(
                line,
                format!("{what} came at {at:.6} s, expected {from:.6} to {to:.6} s"),
            ));
        }
        Ok(())
    }

    fn call(&mut self, call: &'a Call, line: usize, base: Time) -> Result<(), ScriptProblem> {
        if self.pending.is_some() {
            return Err(ScriptProblem::differs(line, "the call before has not returned"));
        }
        let end = base + call.end.unwrap_or(self.last - base);
        match self.host.call(call).map_err(|problem| problem.at(line))? {
            Answer::Now(result, errno) => check_result(call, line, result, errno),
            Answer::Later(pending) => {
                self.pending = Some((pending, call, line, end));
                Ok(())
            }
        }
    }

    /// Sees whether the call that blocks can return.
    fn look_after_pending(&mut self) -> Result<(), ScriptProblem> {
        let Some((pending, call, line, end)) = self.pending.take() else { return Ok(()) };
        match self.host.retry(&pending) {
            None => self.pending = Some((pending, call, line, end)),
            Some((result, errno)) => {
                check_result(call, line, result, errno)?;
                self.check_time(line, "the call's return", self.host.now, end, end)?;
            }
        }
        Ok(())
    }

    /// The script is over: blocking calls have some time left.
    fn finish(&mut self, line: usize) -> Result<(), ScriptProblem> {
        if let Some((.., end)) = self.pending {
            self.run_to(end + self.tolerance(end))?;
            if self.pending.is_some() {
                return Err(ScriptProblem::differs(line, "a call has not returned"));
            }
        }
        Ok(())
    }
}

fn missing(packets: &[(SentSegment, Seen)]) -> String {
    match packets {
        [] => "no packet is sent".into(),
        _ => {
            let list: Vec<String> = packets.iter().map(|(_, seen)| seen.to_string()).collect();
            format!("no more is sent after {}", list.join("; "))
        }
    }
}

fn check_result(call: &Call, line: usize, result: i64, errno: Option<&str>) -> Result<(), ScriptProblem> {
    let same = match &call.result {
        ScriptValue::Any => true,
        expected => expected.number() == Some(result),
    };
    if same && call.errno.as_deref() == errno {
        return Ok(());
    }
    let (expected, error) = (&call.result, &call.errno);
    Err(ScriptProblem::differs(line, format!("{} = {result} {errno:?}, expected {expected:?} {error:?}", call.name)))
}
